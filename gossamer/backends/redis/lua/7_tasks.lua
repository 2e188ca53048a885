-- Tasks: opened once, ordered about by one row's change however many records they have, forgotten in bounded steps.

local K = {}
local FORGOTTEN = 2000 -- keys that one call removes

function K.open(name, rules, spec)
  local task = S.named(name)
  if task then return task end
  S.meta.tasks = S.meta.tasks + 1
  local id = S.meta.tasks
  task = { name = name, state = 'RUNNING', reason = '', seeding = true, opened = S.now, discovered = 0, terminal = 0,
    leased = 0, leased_pages = 0, pages = 0, items = 0, logged = 0, errors = 0, lowest = 0, buckets = 1 }
  call('HSET', P .. 'T', name, id)
  call('ZADD', P .. 'O', id, name)
  call('HSET', P .. 't', 'rules:' .. id, pack(rules), 'spec:' .. id, spec)
  task.rules, task.wish, task.id = rules, rules.wish, id
  S.tasks[id], S.names[name] = task, task
  return task
end

-- What Python needs for a TaskView; the spec is its own text.
function K.view(task)
  local over = S.is_over(task)
  local leased = over and 0 or task.leased
  return { spec = call('HGET', P .. 't', 'spec:' .. task.id), state = task.state, reason = task.reason,
    seeding = task.seeding, opened_ago = S.now - task.opened, ended_ago = task.ended and S.now - task.ended,
    discovered = task.discovered, pending = over and 0 or task.discovered - task.terminal - leased, leased = leased,
    terminal = task.terminal }
end

local function leases_of(task)
  local found = {}
  for _, lease in ipairs(G.all()) do
    if lease.task == task.id then found[#found + 1] = lease end
  end
  return found
end

-- Whether the command may not be obeyed; asked before anything changes.
function K.refusal(task, c)
  if c.stateless or (c.repeatable and task.state == c.target) then return nil end
  for _, state in ipairs(c.from) do
    if task.state == state and not S.is_over(task) then return nil end
  end
  return refuse('ILLEGAL', task.state)
end

function K.control(task, c)
  if c.command == 'seeded' then
    task.seeding = false
  elseif c.command == 'update' then
    call('HSET', P .. 't', 'rules:' .. task.id, pack(c.rules), 'spec:' .. task.id, c.spec)
    task.rules, task.wish = c.rules, c.rules.wish
    for _, lease in ipairs(leases_of(task)) do S.touched[lease.host] = true end
  elseif c.command == 'retry_failed' then
    if S.is_over(task) then task.state, task.reason, task.ended = 'RUNNING', '', nil end
    task.retried_up_to, task.errors = 0, 0
    call('ZADD', P .. 'R', task.id, task.id)
  elseif task.state ~= c.target then
    if ENDED[c.target] then
      R.end_task(task, c.target, c.reason)
    else
      task.state, task.reason = c.target, c.reason
    end
  end
  R.check_end(task)
  H.refresh()
end

-- Remove what a task has. The first call takes it out of sight; later ones, by its number, go on until nothing is left.

function K.forget(task)
  local leases = leases_of(task)
  for _, lease in ipairs(leases) do
    if lease.record then return refuse('WORKED_ON', task.name) end
  end
  S.enter()
  for _, lease in ipairs(leases) do G.free(lease) end -- somebody else may ask for the robots that it was asking for
  local lanes = call('HGETALL', P .. 'l' .. task.id)
  for at = 1, #lanes, 2 do
    local lane = unpacked(lanes[at + 1])
    if lane.attached then
      local host, kept = S.host(tonumber(lanes[at])), {}
      for _, id in ipairs(host.tasks) do
        if id ~= task.id then kept[#kept + 1] = id end
      end
      host.tasks = kept
    end
    call('DEL', P .. 'q' .. task.id .. ':' .. lanes[at], P .. 'e' .. task.id .. ':' .. lanes[at])
  end
  for _, member in ipairs(call('ZRANGE', P .. 'D' .. task.id, 0, -1)) do call('ZREM', P .. 'd', number(task.id) .. member) end
  for _, letter in ipairs({ 'l', 'y', 'D', 'f', 'i', 'o', 'c', 'x', 'p' }) do call('UNLINK', P .. letter .. task.id) end
  call('HDEL', P .. 'T', task.name)
  call('ZREM', P .. 'O', task.name)
  call('ZREM', P .. 'R', task.id)
  call('HDEL', P .. 't', task.id, 'rules:' .. task.id, 'spec:' .. task.id)
  S.tasks[task.id], S.names[task.name], S.lanes[task.id], S.counts[task.id] = nil, nil, nil, nil
  H.refresh()
  return { task.id, math.floor(task.discovered / BUCKET), task.buckets }
end

function K.sweep(id, records, buckets)
  for _ = 1, FORGOTTEN do
    if records >= 0 then
      call('UNLINK', P .. 'r' .. id .. ':' .. records)
      records = records - 1
    elseif buckets > 0 then
      buckets = buckets - 1
      call('UNLINK', P .. 'k' .. id .. ':' .. buckets)
    else
      return nil
    end
  end
  return { id, records, buckets }
end
