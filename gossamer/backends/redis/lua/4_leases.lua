-- Leases: which records a session may have now, host by host in the order in which they became ready; and how attempts end.

local G = {}
local LOOKED_AT = 32

-- {session, task, host, record or 0, kind}
local function write_lease(lane, session, record, kind)
  local n = S.meta.leases + 1
  S.meta.leases = n
  S.granted[#S.granted + 1] = n
  S.granted[#S.granted + 1] = pack({ session, lane.task.id, lane.host.id, record, kind })
  return n
end

local function read_lease(n, found)
  local row = unpacked(found)
  local lease = { number = n, session = row[1], task = row[2], host = row[3], record = row[4] > 0 and row[4] or nil, kind = row[5] }
  S.leases[n] = lease
  return lease
end

function G.lease(n)
  if S.leases[n] ~= nil then return S.leases[n] or nil end
  local found = call('HGET', P .. 'v', n)
  if not found then return nil end
  return read_lease(n, found)
end

-- Look up many at once, with the records that they are for.
function G.load(numbers)
  if #numbers == 0 then return end
  local by_task = {}
  for from = 1, #numbers, 1000 do
    local some = { unpack(numbers, from, math.min(from + 999, #numbers)) }
    for at, found in ipairs(call('HMGET', P .. 'v', unpack(some))) do
      if found then
        local lease = read_lease(some[at], found)
        if lease.record then
          by_task[lease.task] = by_task[lease.task] or {}
          table.insert(by_task[lease.task], lease.record)
        end
      else
        S.leases[some[at]] = false
      end
    end
  end
  for id, records in pairs(by_task) do S.load_records(S.task(id), records) end
end

function G.all()
  local found, all = {}, call('HGETALL', P .. 'v')
  for at = 1, #all, 2 do
    local n = tonumber(all[at])
    local lease = S.leases[n]
    if lease == nil then lease = read_lease(n, all[at + 1]) end
    if lease then found[#found + 1] = lease end
  end
  table.sort(found, function(a, b) return a.number < b.number end)
  return found
end

function S.write_leases()
  each_chunk('HSET', P .. 'v', S.granted, 2)
  each_chunk('HDEL', P .. 'v', S.freed, 1)
end

-- Delete the lease and give its slot back; what becomes of its record is the caller's to say.
function G.free(lease)
  S.leases[lease.number] = false
  S.freed[#S.freed + 1] = lease.number
  local host, task = S.host(lease.host), S.task(lease.task)
  host.open = host.open - 1
  S.touched[lease.host] = true
  if not lease.record then
    host.robots_open = false
    return
  end
  local lane = S.lane(task, host)
  lane.open = lane.open - 1
  task.leased = task.leased - 1
  if lease.kind == PAGE then task.leased_pages = task.leased_pages - 1 end
end

function G.give_back(lease)
  G.free(lease)
  if lease.record then R.give_back(S.record(S.task(lease.task), lease.record)) end
end

-- What a lane may have

local function pages_left(task)
  local limit = task.rules.max_pages
  return limit and limit - task.pages - task.leased_pages or NO_LIMIT
end

function G.is_spent(lane)
  local budget = lane.task.wish.pages_per_host
  return lane.host.name ~= '' and budget ~= nil and lane.pages >= budget
end

local function room(lane)
  local free = H.free_slots(lane.host, H.asking(lane.host))
  if lane.host.name == '' then return free end
  local budget = lane.task.wish.pages_per_host
  local here = budget and budget - lane.pages - lane.open or NO_LIMIT
  return math.max(math.min(free, here, pages_left(lane.task)), 0)
end

-- Up to so many lanes that are ready, from a place in their order on; without pages left, that of the seeds alone.
local function ready_lanes(task, from, most)
  local key, members = P .. 'y' .. task.id, {}
  if pages_left(task) > 0 then
    members = call('ZRANGEBYSCORE', key, '-inf', exact(S.now), 'LIMIT', from, most)
  elseif from == 0 then
    local score = call('ZSCORE', key, number(0))
    if score and tonumber(score) <= S.now then members = { number(0) } end
  end
  local lanes = {}
  for at, member in ipairs(members) do lanes[at] = S.lane(task, S.host(read_number(member))) end
  return lanes
end

local function occupy(lane, record)
  lane.host.open = lane.host.open + 1
  if not record then
    lane.host.robots_open = true
    return
  end
  lane.open = lane.open + 1
  lane.task.leased = lane.task.leased + 1
  if record.kind == PAGE then lane.task.leased_pages = lane.task.leased_pages + 1 end
end

local function take(lane, most, into)
  local n = math.min(most, room(lane))
  if n <= 0 then return end
  S.flush()
  local front, ids = call('ZPOPMIN', S.queue_key(lane.task, lane.host), n), {}
  for at = 1, #front, 2 do ids[#ids + 1] = read_number(front[at]) end
  S.load_records(lane.task, ids)
  for at = 1, #front, 2 do
    local record = S.record(lane.task, read_number(front[at]))
    record.state, record.dirty = LEASED, true
    lane.queued = lane.queued - 1
    occupy(lane, record)
    into[#into + 1] = record
  end
end

local function grant(task, session, n, answer)
  local robots, records, granted = {}, {}, {}
  for _, lane in ipairs(n > 0 and ready_lanes(task, 0, n) or {}) do
    local left = n - #robots - #records
    if left == 0 then break end
    if G.is_spent(lane) then
      R.close_lane(lane, SKIPPED, 'budget')
    elseif not H.is_still_ready(lane) then
      S.touched[lane.host.id] = true
    elseif task.wish.robots and not H.knows_robots(lane.host) then
      occupy(lane)
      robots[#robots + 1] = lane
    else
      take(lane, left, records)
    end
  end
  for _, lane in ipairs(robots) do
    granted[lane.host.id] = true
    answer.grants[#answer.grants + 1] = { write_lease(lane, session, 0, ROBOTS), task.name, ROBOTS, lane.host.scheme,
      lane.host.name, 0, 0, 0, '', 0, 0, false }
  end
  for _, record in ipairs(records) do
    local host, url, request = S.host(record.host), S.text_of(record)
    granted[record.host] = true
    answer.grants[#answer.grants + 1] = { write_lease(S.lane(task, host), session, record.id, record.kind), task.name,
      record.kind, url, host.name, record.priority, record.depth, record.hops, request or '', record.retries,
      record.crashes, record.suspect or false }
  end
  for id in pairs(granted) do answer.hosts[#answer.hosts + 1] = H.row(S.host(id)) end
  H.refresh(granted)
  R.check_end(task)
end

-- Whether a lane was left only because the caller wanted no more. Those before it get their hours anew.
local function is_more_ready(task)
  local from = 0
  while true do
    local lanes = ready_lanes(task, from, LOOKED_AT)
    for _, lane in ipairs(lanes) do
      if G.is_spent(lane) or H.is_still_ready(lane) then
        H.refresh()
        return true
      end
      S.touched[lane.host.id] = true
    end
    if #lanes < LOOKED_AT then
      H.refresh()
      return false
    end
    from = from + LOOKED_AT
  end
end

local function wait_of(task)
  if is_more_ready(task) then return 0 end
  local key, times = P .. 'y' .. task.id, {}
  if pages_left(task) > 0 then
    times[1] = call('ZRANGEBYSCORE', key, '(' .. exact(S.now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  else
    times[1] = call('ZSCORE', key, number(0)) or nil
  end
  times[#times + 1] = call('ZRANGE', P .. 'D' .. task.id, 0, 0, 'WITHSCORES')[2]
  local wait
  for _, time in ipairs(times) do
    local seconds = math.max(tonumber(time) - S.now, 0)
    wait = wait and math.min(wait, seconds) or seconds
  end
  return wait
end

function G.lease_all(session, want, answer)
  answer.grants, answer.hosts, answer.ended = answer.grants or {}, {}, {}
  local wanted, held = {}, S.meta.hold - S.now
  for _, pair in ipairs(want) do
    local task = S.named(pair[1])
    if task.state ~= 'RUNNING' then
      answer.ended[#answer.ended + 1] = { task.name, task.state }
    elseif held <= 0 and not S.log_is_full(task) then
      grant(task, session, pair[2], answer)
      wanted[#wanted + 1] = task
    end
  end
  for _, task in ipairs(wanted) do
    local wait = wait_of(task)
    if wait and (answer.wait == nil or wait < answer.wait) then answer.wait = wait end
  end
  if held > 0 then answer.wait = held end
  answer.now = S.now
  return answer
end
