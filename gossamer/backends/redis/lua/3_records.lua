-- Records: made, queued, delayed, ended, closed off with their host, revived; and when a task is complete.

local R = {}
local TICK_DELAYED, TICK_RETRIED = 1000, 500

local function waiting(lane) return P .. 'e' .. lane.task.id .. ':' .. lane.host.id end

local function delayed_member(task, id) return number(task.id) .. number(id) end

local function count_end(record, by)
  local task, kind = record.task, STATE[record.state]
  local code = record.code
  S.count(task, kind, by)
  S.count(task, kind .. ':' .. ((code == nil or code == '') and 'ok' or code), by)
  task.terminal = task.terminal + by
end

local function undelay(lane, record)
  call('ZREM', P .. 'd', delayed_member(record.task, record.id))
  call('ZREM', P .. 'D' .. record.task.id, number(record.id))
  call('SREM', waiting(lane), record.id)
  record.due = nil
end

function R.finish(record, state, code)
  record.state, record.code, record.dirty = state, code ~= '' and code or nil, true
  count_end(record, 1)
  if state == FAILED then call('ZADD', P .. 'f' .. record.task.id, record.id, number(record.id)) end
end

function R.finish_closed(record, state, code)
  R.finish(record, state, code)
  if state == FAILED then S.given_up[#S.given_up + 1] = record end
end

function R.lane_of(record) return S.lane(record.task, S.host(record.host)) end

-- The record waits (again): in its queue, or until it is due. In a closed lane it ends instead.
function R.give_back(record, delay)
  local lane = R.lane_of(record)
  record.state, record.dirty = PENDING, true
  S.attach(lane)
  S.fed[record.host] = true
  if lane.closed then
    S.touched[record.host] = true
    R.finish_closed(record, lane.closed, lane.closed_code)
  elseif delay and delay > 0 then
    record.due = S.now + delay
    call('ZADD', P .. 'd', exact(record.due), delayed_member(record.task, record.id))
    call('ZADD', P .. 'D' .. record.task.id, exact(record.due), number(record.id))
    call('SADD', waiting(lane), record.id)
  else
    S.enqueue(lane, record)
  end
end

local function is_beyond_budget(task, link)
  local budget = task.rules.pages_per_pattern
  if not budget or link[6] ~= PAGE then return false end
  local name = link[11]
  if tonumber(call('HGET', P .. 'p' .. task.id, name) or '0') >= budget then return true end
  call('HINCRBY', P .. 'p' .. task.id, name, 1)
  return false
end

local function make(task, host, link, parent)
  task.discovered = task.discovered + 1
  local id = task.discovered
  S.remember(task, link[1], id)
  S.open_lane(task, host)
  local record = S.new_record(task, id, { host = host.id, state = PENDING, priority = link[4], depth = link[5], hops = link[7],
    kind = link[6], retries = 0, crashes = 0, suspect = false, parent = parent or 0, url = link[2],
    request = link[8] ~= '' and link[8] or nil })
  if is_beyond_budget(task, link) then
    S.attach(S.lane(task, host))
    S.fed[host.id] = true
    R.finish(record, SKIPPED, 'trap_pattern')
    S.keep_sample(task, 'skipped:trap_pattern', string.sub(link[2], 1, SAMPLE_LENGTH))
  else
    R.give_back(record, link[10])
  end
end

local function raise_priority(record, priority)
  if not record.due then
    S.flush()
    call('ZADD', S.queue_key(record.task, S.host(record.host)), -priority, number(record.id))
  end
  record.priority, record.dirty = priority, true
end

-- Links are arrays {key, url, host, priority, depth, kind, hops, request, own key, delay, pattern}. How many were new.
function R.push(task, links, parent)
  local new = 0
  for _, link in ipairs(links) do
    local host = S.meet(link[3], link[2])
    local known = S.known(task, link[1])
    if not known then
      make(task, host, link, parent)
      new = new + 1
    elseif link[4] > task.lowest then -- else no record is lower, so none can rise
      local record = S.record(task, known)
      if record.state == PENDING and link[4] > record.priority then raise_priority(record, link[4]) end
    end
    task.lowest = math.min(task.lowest, link[4])
  end
  return new
end

-- End all that waits in a lane, and by the closure all that will ever come.
function R.close_lane(lane, state, code)
  S.flush()
  lane.closed, lane.closed_code = state, code
  S.touched[lane.host.id] = true
  S.attach(lane)
  local queue = S.queue_key(lane.task, lane.host)
  for _, member in ipairs(call('ZRANGE', queue, 0, -1)) do
    R.finish_closed(S.record(lane.task, read_number(member)), state, code)
  end
  call('DEL', queue)
  lane.queued = 0
  for _, id in ipairs(call('SMEMBERS', waiting(lane))) do
    local record = S.record(lane.task, tonumber(id))
    undelay(lane, record)
    R.finish_closed(record, state, code)
  end
end

-- When all of the call came so far, what went with a host counts as failed, and the first discovered are samples.
function R.account_given_up()
  table.sort(S.given_up, function(a, b)
    if a.task.id ~= b.task.id then return a.task.id < b.task.id end
    return a.id < b.id
  end)
  for _, record in ipairs(S.given_up) do
    record.task.errors = record.task.errors + 1
    S.keep_sample(record.task, 'failed:' .. (record.code or ''), string.sub((S.text_of(record)), 1, SAMPLE_LENGTH))
  end
  S.given_up = {}
end

-- Tasks end

function R.end_task(task, state, reason)
  task.state, task.reason, task.ended, task.retried_up_to = state, reason, S.now, nil
  call('ZREM', P .. 'R', task.id)
end

function R.check_limits(task)
  if task.state ~= 'RUNNING' then return end
  local rules = task.rules
  if rules.max_errors and task.errors >= rules.max_errors then
    R.end_task(task, 'FAILED', 'max_errors')
  elseif rules.max_items and task.items >= rules.max_items then
    R.end_task(task, 'COMPLETED', 'max_items')
  elseif rules.max_pages and task.pages >= rules.max_pages then
    R.end_task(task, 'COMPLETED', 'max_pages')
  end
end

function R.check_end(task)
  R.check_limits(task)
  if task.state ~= 'RUNNING' or task.seeding or task.rules.keep_open or task.retried_up_to then return end
  if task.discovered == task.terminal then R.end_task(task, 'COMPLETED', '') end
end

-- Time passes: delayed records fall due, retry-failed goes on; both in bounded steps.

local function revive(record)
  count_end(record, -1)
  call('ZREM', P .. 'f' .. record.task.id, number(record.id))
  record.code, record.retries, record.crashes, record.suspect = nil, 0, 0, false
  local lane = R.lane_of(record)
  lane.closed, lane.closed_code = nil, nil
  R.give_back(record)
end

local function retry_some(task)
  local found = call('ZRANGEBYSCORE', P .. 'f' .. task.id, '(' .. task.retried_up_to, '+inf', 'LIMIT', 0, TICK_RETRIED + 1)
  local ids = {}
  for at, member in ipairs(found) do ids[at] = read_number(member) end
  for at = 1, math.min(#ids, TICK_RETRIED) do revive(S.record(task, ids[at])) end
  if #ids > TICK_RETRIED then
    task.retried_up_to = ids[TICK_RETRIED]
  else
    task.retried_up_to = nil
    call('ZREM', P .. 'R', task.id)
    R.check_end(task)
  end
end

function R.tick()
  for _, member in ipairs(call('ZRANGEBYSCORE', P .. 'd', '-inf', exact(S.now), 'LIMIT', 0, TICK_DELAYED)) do
    local task = S.task(read_number(string.sub(member, 1, 5)))
    local record = S.record(task, read_number(string.sub(member, 6)))
    undelay(R.lane_of(record), record)
    R.give_back(record)
  end
  for _, id in ipairs(call('ZRANGE', P .. 'R', 0, -1)) do retry_some(S.task(tonumber(id))) end
end
