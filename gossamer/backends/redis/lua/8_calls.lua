-- The calls. Each refuses before it changes anything, then enters, acts, and writes its rows.

local C = {}

local function all_named(want)
  for _, pair in ipairs(want) do
    if not S.named(pair[1]) then return refuse('UNKNOWN', pair[1]) end
  end
end

local function lost_its_end(task, sink, stands)
  if stands > S.meta.items then return refuse('AHEAD', exact(stands), exact(S.meta.items)) end
end

local function patterns_missing(task, links)
  if not task.rules.pages_per_pattern or #links == 0 then return false end
  for _, name in ipairs(A.patterns) do
    if name == task.name then return false end
  end
  return true
end

function C.open_task()
  S.enter()
  return K.view(K.open(A.name, A.rules, A.spec))
end

function C.tasks()
  local views = {}
  for _, name in ipairs(A.names or call('ZRANGE', P .. 'O', 0, -1)) do
    local task = S.named(name)
    if task then views[#views + 1] = task end
  end
  table.sort(views, function(a, b) return a.id < b.id end)
  for at, task in ipairs(views) do views[at] = K.view(task) end
  return views
end

function C.push()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  if S.is_over(task) then return refuse('ENDED', task.state) end
  if patterns_missing(task, A.links) then return refuse('PATTERNS', A.task) end
  S.enter()
  local new = R.push(task, A.links, 0)
  R.account_given_up()
  R.check_end(task)
  H.refresh()
  return { new, #A.links - new }
end

function C.lease()
  if not V.is_alive(A.session) then return refuse('SESSION', A.session) end
  local unknown = all_named(A.want)
  if unknown then return unknown end
  S.enter()
  R.tick()
  H.refresh()
  return G.lease_all(A.session, A.want, {})
end

function C.settle()
  local unknown = all_named(A.want)
  if unknown then return unknown end
  local numbers = {}
  for at, outcome in ipairs(A.outcomes) do numbers[at] = outcome.number end
  G.load(numbers)
  for _, outcome in ipairs(A.outcomes) do
    outcome.links, outcome.items = outcome.links or {}, outcome.items or {}
    outcome.counts, outcome.samples = outcome.counts or {}, outcome.samples or {}
    local lease = #outcome.links > 0 and G.lease(outcome.number)
    local task = lease and S.task(lease.task)
    if task and patterns_missing(task, outcome.links) then return refuse('PATTERNS', task.name) end
  end
  S.enter()
  R.tick()
  local answer = {}
  if A.incarnation ~= S.meta.incarnation then
    give_all_back(A.session, A.outcomes, answer)
    return answer
  end
  settle(A.session, A.outcomes, answer)
  if V.is_alive(A.session) then
    G.lease_all(A.session, A.want, answer)
  end
  return answer
end

function C.control()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  local refused = K.refusal(task, A)
  if refused then return refused end
  S.enter()
  K.control(task, A)
  return K.view(task)
end

function C.forget()
  if A.sweep then return K.sweep(A.sweep[1], A.sweep[2], A.sweep[3]) end
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  return K.forget(task)
end

function C.open_session()
  S.enter()
  V.open(A.session, A.worker)
  return true
end

function C.beat()
  S.enter()
  return V.beat(A.session)
end

function C.release()
  S.enter()
  return V.release(A.session, A.numbers)
end

function C.close_session()
  S.enter()
  V.close(A.session)
  return true
end

function C.reap()
  S.enter()
  return V.reap()
end

-- The item log

function C.read()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  local refused = lost_its_end(task, '', A.after)
  if refused then return refused end
  local found = {}
  for at, entry in ipairs(call('XRANGE', P .. 'i' .. task.id, '(' .. exact(A.after) .. '-0', '+', 'COUNT', A.limit)) do
    local id, fields = entry[1], entry[2]
    found[at] = { tonumber(string.match(id, '^%d+')), fields[2], fields[4] }
  end
  return found
end

local function standing(task, sink)
  local found = call('HMGET', P .. 'o' .. task.id, 'n:' .. sink, 's:' .. sink)
  return tonumber(found[1] or '0'), found[2] or '', found[1]
end

function C.cursor()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  local stands, state, is_there = standing(task, A.sink)
  local refused = lost_its_end(task, A.sink, stands)
  if refused then return refused end
  S.enter()
  if not is_there then call('HSET', P .. 'o' .. task.id, 'n:' .. A.sink, 0, 's:' .. A.sink, '') end
  return stands, state
end

function C.advance()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  local refused = lost_its_end(task, A.sink, A.number)
  if refused then return refused end
  local key = P .. 'o' .. task.id
  local stands = standing(task, A.sink)
  if A.after and A.after ~= stands and A.number ~= stands then return refuse('MOVED', exact(stands), exact(A.after)) end
  S.enter()
  if A.number >= stands then call('HSET', key, 'n:' .. A.sink, exact(A.number), 's:' .. A.sink, A.state) end
  local held, all = nil, call('HGETALL', key)
  for at = 1, #all, 2 do
    if string.sub(all[at], 1, 2) == 'n:' then
      local n = tonumber(all[at + 1])
      held = held and math.min(held, n) or n
    end
  end
  task.logged = task.logged - call('XTRIM', P .. 'i' .. task.id, 'MINID', exact(held + 1) .. '-0')
  return true
end

-- Oversight

function C.counters()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  local view, counts = K.view(task), {}
  local all = call('HGETALL', P .. 'c' .. task.id)
  for at = 1, #all, 2 do counts[#counts + 1] = { all[at], tonumber(all[at + 1]) } end
  view.spec = nil
  return { view = view, counts = counts, pages = task.pages }
end

function C.samples()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  local found, all = {}, call('HGETALL', P .. 'x' .. task.id)
  for at = 1, #all, 2 do found[#found + 1] = { all[at], unpacked(all[at + 1]) } end
  return found
end

function C.explain()
  local task = S.named(A.task)
  if not task then return refuse('UNKNOWN', A.task) end
  local id = S.known(task, A.key)
  if not id then return nil end
  local record = S.record(task, id)
  local parent = record.parent > 0 and S.text_of(S.record(task, record.parent)) or ''
  local cancelled = S.is_over(task) and (record.state == PENDING or record.state == LEASED)
  return { url = S.text_of(record), state = cancelled and 5 or record.state, code = cancelled and task.reason or record.code or '',
    depth = record.depth, priority = record.priority, retries = record.retries, crashes = record.crashes,
    suspect = record.suspect or false, found_on = parent, body = record.body,
    due_in = (not cancelled and record.due) and math.max(record.due - S.now, 0) or 0, host = H.row(S.host(record.host)),
    now = S.now }
end

function C.hosts()
  local found, robots = { now = S.now, rows = {} }, {}
  for _, name in ipairs(A.names) do
    local id = call('HGET', P .. 'H', name)
    if id then
      found.rows[#found.rows + 1] = H.row(S.host(tonumber(id)))
      robots[#robots + 1] = call('HGET', P .. 'b', id) or ''
    end
  end
  return found, unpack(robots)
end

function C.sessions()
  local found, held, all = {}, {}, call('ZRANGE', P .. 'z', 0, -1, 'WITHSCORES')
  for _, lease in ipairs(G.all()) do
    held[lease.session] = held[lease.session] or {}
    table.insert(held[lease.session], { S.task(lease.task).name, S.host(lease.host).name })
  end
  for at = 1, #all, 2 do
    found[#found + 1] = { all[at], call('HGET', P .. 'w', all[at]) or '', S.now - tonumber(all[at + 1]), held[all[at]] or {} }
  end
  return found
end

-- One call, from its arguments to its answer

local function lose_end()
  -- What was granted and found in the lost end is done again; nothing of what was made of it is taken.
  local m = S.meta
  m.incarnation, m.hold, m.lost = m.incarnation + 1, math.max(m.hold, S.now + TTL), m.run
  m.leases = m.leases + 1000000 -- numbers that were given in the lost end are not given again
end

local function follow_server()
  -- Another process answers than before. What it may have lost is judged before anything is granted again.
  local m = S.meta
  local run = string.match(call('INFO', 'server'), 'run_id:(%x+)') or ''
  if run ~= m.run then
    local is_first = m.run == ''
    m.run, m.floor = run, m.calls
    if not is_first then m.items = m.items + 1000000 end -- numbers of items that may have been lost are not given again
    local second = string.match(call('INFO', 'replication'), 'master_replid2:(%x+)') or ''
    if is_first then
      m.lost = ''
    elseif string.find(second, '[1-9a-f]') then -- it was a replica: the last writes may not have reached it
      lose_end()
    else
      m.hold = math.max(m.hold, S.now + A.settling) -- until everybody living has called, who knows what was done
    end
  end
  if A.run and A.run ~= run and A.highest > m.floor and m.lost ~= run then lose_end() end
end

local READINGS = { tasks = true, read = true, counters = true, samples = true, explain = true, hosts = true,
  sessions = true }

local function answer_call()
  S.load_meta()
  if S.meta.format and tonumber(S.meta.format) > A.format then return refuse('FORMAT', S.meta.format) end
  local reading = READINGS[A.call]
  if not reading then
    follow_server()
    if A.identity then
      local last = call('HGET', P .. 'a', A.session)
      if last and string.sub(last, 1, 12) == A.identity then return { string.sub(last, 13), S.meta.incarnation, S.meta.calls, S.meta.run } end
    end
  end
  local results = { C[A.call]() }
  if type(results[1]) == 'table' and results[1].err then return results[1] end
  local answer = { pack(results[1]), S.meta.incarnation, reading and -1 or S.meta.calls, S.meta.run }
  for at = 2, #results do answer[at + 3] = results[at] end
  if not reading then
    S.write()
    if A.identity and V.is_alive(A.session) then call('HSET', P .. 'a', A.session, A.identity .. answer[1]) end
  end
  return answer
end

return answer_call()
