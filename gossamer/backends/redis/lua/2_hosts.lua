-- Hosts: the arithmetic of model/hostrow.py. The contract's tests and random lives hold the two together.

local H = {}

function H.obey(host, order, sent_ago)
  if host.name == '' then return end
  local now = S.now
  order = order or {}
  if sent_ago then
    host.next_turn = math.max(host.next_turn, now - sent_ago + (order.turn or 0))
    host.last_sent = math.max(host.last_sent, now - sent_ago)
  end
  if order.delay then host.delay = order.delay end
  if order.latency then host.latency = order.latency end
  if order.good then
    host.trouble, host.bad_since = 0, nil
    if now >= host.parked_until then host.level = math.max(host.level - 1, 0) end
  end
  if order.bad then
    host.trouble = host.trouble + 1
    host.bad_since = host.bad_since or now
  end
  if order.park and order.park > 0 then
    host.parked_until = math.max(host.parked_until, now + math.min(order.park, MAX_PARKED))
    host.level = math.max(host.level, order.level or 0)
  end
  if order.robots then
    host.robots, host.crawl_delay = order.robots.body, order.robots.crawl_delay
    host.robots_version = host.robots_version + 1
    host.robots_until = now + order.robots.ttl
  end
end

function H.knows_robots(host)
  return host.name == '' or (host.robots_version > 0 and host.robots_until > S.now)
end

-- What the running tasks that have something due or leased at a host ask of it.
function H.asking(host)
  local asked = {}
  for _, id in ipairs(host.tasks) do
    local task = S.task(id)
    if task and task.state == 'RUNNING' then
      local lane = S.lane(task, host)
      if lane and (lane.queued > 0 or lane.open > 0) then asked[#asked + 1] = lane end
    end
  end
  return asked
end

function H.delay(host, asked)
  if host.name == '' then return 0 end
  local delay = host.crawl_delay
  for _, lane in ipairs(asked) do
    delay = math.max(delay, lane.task.wish.delay, host.delay or lane.first_delay)
  end
  return delay
end

function H.free_slots(host, asked)
  if host.name == '' then return NO_LIMIT end
  local limit = NO_LIMIT
  if H.delay(host, asked) > 0 then
    limit = 1
  else
    for _, lane in ipairs(asked) do limit = math.min(limit, lane.task.wish.per_host) end
  end
  return math.max(limit - host.open, 0)
end

local function turn_of(host, asked)
  local parked = math.min(host.parked_until, S.now + MAX_PARKED)
  return math.max(host.next_turn, parked, host.last_sent + H.delay(host, asked))
end

function H.ready_at(lane, asked, granted)
  local host, wish = lane.host, lane.task.wish
  local budget = wish.pages_per_host
  local in_flight = host.name ~= '' and budget and lane.pages < budget and budget <= lane.pages + lane.open
  if in_flight or lane.closed or lane.queued == 0 then return nil end
  if H.free_slots(host, asked) == 0 or (wish.robots and host.robots_open) then return nil end
  local turn = turn_of(host, asked)
  if lane.ready_at and lane.ready_at >= turn and not granted then return lane.ready_at end
  return math.max(S.now, turn)
end

function H.is_still_ready(lane)
  local ready = H.ready_at(lane, H.asking(lane.host), false)
  return ready ~= nil and ready <= S.now
end

local function set_ready(lane, ready)
  if ready == lane.ready_at then return end
  lane.ready_at = ready
  local key, member = P .. 'y' .. lane.task.id, number(lane.host.id)
  if ready then
    call('ZADD', key, exact(ready), member)
  else
    call('ZREM', key, member)
  end
end

local function refresh_host(host, granted)
  local asked, kept, left = H.asking(host), {}, false
  for _, id in ipairs(host.tasks) do
    local task = S.task(id)
    local lane = task and S.lane(task, host)
    if lane then
      set_ready(lane, H.ready_at(lane, asked, granted))
      if S.is_over(task) and lane.queued == 0 and lane.open == 0 then
        lane.attached, left = nil, true -- it asks for nothing; what comes back to it attaches it again
      else
        kept[#kept + 1] = id
      end
    else
      left = true
    end
  end
  if left then host.tasks = kept end
end

local function has_sleeper(host)
  for _, id in ipairs(host.tasks) do
    local task = S.task(id)
    local lane = task and S.lane(task, host)
    if lane and lane.ready_at == nil and lane.queued > 0 and not lane.closed then return true end
  end
  return false
end

-- Say anew when each lane may be leased from, at the touched hosts, and where a lane that was fed has no time yet.
function H.refresh(granted)
  granted = granted or {}
  local hosts = {}
  for id in pairs(S.touched) do hosts[id] = true end
  for id in pairs(granted) do hosts[id] = true end
  for id in pairs(S.fed) do
    if not hosts[id] and has_sleeper(S.host(id)) then hosts[id] = true end
  end
  for id in pairs(hosts) do refresh_host(S.host(id), granted[id] or false) end
  S.touched, S.fed = {}, {}
end

-- The row as Python reads it; what it means is worked out there.
function H.row(host)
  return { name = host.name, id = host.id, scheme = host.scheme, open = host.open, next_turn = host.next_turn,
    last_sent = host.last_sent, parked_until = host.parked_until, level = host.level, trouble = host.trouble,
    bad_since = host.bad_since, delay = host.delay, latency = host.latency, crawl_delay = host.crawl_delay,
    robots_version = host.robots_version, robots_until = host.robots_until, robots_open = host.robots_open }
end
