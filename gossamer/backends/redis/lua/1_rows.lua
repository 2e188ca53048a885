-- Rows: what one call reads, keeps in hand, and writes back at its end.
--
-- KEYS[1] is the prefix of one partition, with the hash tag that keeps all its keys on one node. Every row is one field of a
-- hash, packed; records lie in small hashes by their number, which Redis keeps as flat lists. Nothing of a call is written
-- before everything that may refuse it has been asked, and no command below can fail on good rows: a script is not undone.
local P = KEYS[1]
local A = cmsgpack.unpack(ARGV[1])
local call = redis.call
local pack, unpacked = cmsgpack.pack, cmsgpack.unpack
local S = { tasks = {}, names = {}, hosts = {}, met = {}, lanes = {}, records = {}, touched = {}, fed = {}, given_up = {},
  counts = {}, queued = {}, leases = {}, granted = {}, freed = {} }

local DONE, FAILED, SKIPPED = 2, 3, 4
local PENDING, LEASED = 0, 1
local PAGE, SEED, ROBOTS = 0, 1, 2
local STATE = { [2] = 'done', [3] = 'failed', [4] = 'skipped' }
local ENDED = { COMPLETED = true, FAILED = true, CANCELLED = true }
local TTL = 10
local MAX_PARKED, NO_LIMIT = 3600, 1073741824
local KEPT, SAMPLE_LENGTH = 5, 300
local BUCKET, CHUNK, FULL = 32, 64, 40 -- records a bucket, bytes a field, keys a bucket of `known` on average

local function refuse(code, ...)
  return { err = 'GOSSAMER ' .. code .. ' ' .. table.concat({ ... }, ' ') }
end

local function number(n) return struct.pack('>I5', n) end
local function read_number(text) return (struct.unpack('>I5', text)) end

local function each_chunk(command, key, args, width)
  -- As few calls as Lua's stack allows.
  local most = 4000 - 4000 % width
  for at = 1, #args, most do
    call(command, key, unpack(args, at, math.min(at + most - 1, #args)))
  end
end

-- The store's own rows

function S.load_meta()
  local m = call('HMGET', P .. 'm', 'seen', 'offset', 'tasks', 'hosts', 'leases', 'items', 'run', 'calls', 'incarnation',
    'hold', 'format', 'floor', 'lost')
  S.meta = { seen = tonumber(m[1] or '0'), offset = tonumber(m[2] or '0'), tasks = tonumber(m[3] or '0'),
    hosts = tonumber(m[4] or '0'), leases = tonumber(m[5] or '0'), items = tonumber(m[6] or '0'), run = m[7] or '',
    calls = tonumber(m[8] or '0'), incarnation = tonumber(m[9] or '0'), hold = tonumber(m[10] or '0'), format = m[11], floor = tonumber(m[12] or '0'), lost = m[13] or '' }
  local raw = A.now
  if not raw then
    local t = call('TIME')
    raw = tonumber(t[1]) + tonumber(t[2]) / 1000000
  end
  S.now = raw + S.meta.offset
  if S.now < S.meta.seen then -- the clock was set back: our time stands for no moment and never turns
    S.meta.offset = S.meta.offset + (S.meta.seen - S.now)
    S.now = S.meta.seen
  end
end

function S.enter()
  -- Begin a call that changes something. A halt of the whole store is nobody's death.
  if S.now - S.meta.seen > TTL then
    for _, session in ipairs(call('ZRANGE', P .. 'z', 0, -1)) do call('ZADD', P .. 'z', S.now, session) end
  end
  S.meta.seen = S.now
  S.meta.calls = S.meta.calls + 1
end

local function exact(n) return string.format('%.17g', n) end

function S.write_meta()
  local m = S.meta
  call('HSET', P .. 'm', 'seen', exact(m.seen), 'offset', exact(m.offset), 'tasks', m.tasks, 'hosts', m.hosts,
    'leases', exact(m.leases), 'items', exact(m.items), 'run', m.run, 'calls', exact(m.calls), 'incarnation', m.incarnation,
    'hold', exact(m.hold), 'format', m.format or A.format or '1', 'floor', exact(m.floor), 'lost', m.lost)
end

-- Tasks

function S.task(id)
  local task = S.tasks[id]
  if not task then
    local found = call('HMGET', P .. 't', id, 'rules:' .. id)
    if not found[1] then return nil end
    task = unpacked(found[1])
    task.rules = unpacked(found[2])
    task.wish = task.rules.wish
    task.id = id
    S.tasks[id] = task
    S.names[task.name] = task
  end
  return task
end

function S.named(name)
  if S.names[name] then return S.names[name] end
  local id = call('HGET', P .. 'T', name)
  return id and S.task(tonumber(id))
end

function S.is_over(task) return ENDED[task.state] or false end

function S.log_is_full(task) return task.rules.log_limit ~= nil and task.logged >= task.rules.log_limit end

local function write_tasks()
  for id, task in pairs(S.tasks) do
    local rules, wish = task.rules, task.wish
    task.rules, task.wish, task.id, task.halved, task.half = nil, nil, nil, nil, nil
    call('HSET', P .. 't', id, pack(task))
    task.rules, task.wish, task.id = rules, wish, id
  end
end

function S.count(task, name, by)
  local counts = S.counts[task.id]
  if not counts then
    counts = {}
    S.counts[task.id] = counts
  end
  counts[name] = (counts[name] or 0) + by
end

local function write_counts()
  for id, counts in pairs(S.counts) do
    for name, by in pairs(counts) do
      if by ~= 0 then call('HINCRBY', P .. 'c' .. id, name, by) end
    end
  end
end

function S.keep_sample(task, counter, example)
  local key = P .. 'x' .. task.id
  local found = call('HGET', key, counter)
  local kept = found and unpacked(found) or {}
  if #kept < KEPT then
    kept[#kept + 1] = example
    call('HSET', key, counter, pack(kept))
  end
end

-- Hosts, and the lanes of tasks on them

function S.host(id)
  local host = S.hosts[id]
  if not host then
    host = unpacked(call('HGET', P .. 'h', id))
    S.hosts[id] = host
    S.met[host.name] = host
  end
  return host
end

function S.meet(name, url)
  local host = S.met[name]
  if host then return host end
  local id = call('HGET', P .. 'H', name)
  if id then return S.host(tonumber(id)) end
  id = name == '' and 0 or S.meta.hosts + 1
  if id > 0 then S.meta.hosts = id end
  host = { id = id, name = name, scheme = string.match(url, '^([^:]*)') or '', open = 0, next_turn = 0, last_sent = -1e9,
    parked_until = 0, level = 0, trouble = 0, latency = 0, crawl_delay = 0, robots_version = 0, robots_until = 0,
    robots_open = false, tasks = {} }
  call('HSET', P .. 'H', name, id)
  S.hosts[id], S.met[name] = host, host
  return host
end

local function write_hosts()
  local args = {}
  for id, host in pairs(S.hosts) do
    if host.robots then
      call('HSET', P .. 'b', id, host.robots)
      host.robots = nil
    end
    args[#args + 1] = id
    args[#args + 1] = pack(host)
  end
  each_chunk('HSET', P .. 'h', args, 2)
end

function S.lane(task, host)
  local of_task = S.lanes[task.id]
  if not of_task then
    of_task = {}
    S.lanes[task.id] = of_task
  end
  local lane = of_task[host.id]
  if lane == nil then
    local found = call('HGET', P .. 'l' .. task.id, host.id)
    lane = found and unpacked(found) or false
    of_task[host.id] = lane
    if lane then lane.task, lane.host = task, host end
  end
  return lane
end

function S.open_lane(task, host)
  local lane = S.lane(task, host)
  if lane then return lane end
  local first = task.wish.first_delay
  for _, name in ipairs(task.wish.eager) do
    if name == host.name then first = 0 end
  end
  lane = { queued = 0, open = 0, pages = 0, first_delay = first, task = task, host = host }
  S.lanes[task.id][host.id] = lane
  return lane
end

function S.attach(lane)
  -- The host knows the tasks that may ask something of it.
  if not lane.attached then
    lane.attached = true
    table.insert(lane.host.tasks, lane.task.id)
  end
end

local function write_lanes()
  for id, of_task in pairs(S.lanes) do
    local args = {}
    for host, lane in pairs(of_task) do
      if lane then
        lane.task, lane.host = nil, nil
        args[#args + 1] = host
        args[#args + 1] = pack(lane)
      end
    end
    each_chunk('HSET', P .. 'l' .. id, args, 2)
  end
end

-- Records: what changes lies in one field of a small hash, the URL and the request in the fields behind it, cut to pieces that
-- Redis keeps flat. Most that is done to a record needs the first only.

local FIELDS = { 'host', 'state', 'priority', 'depth', 'hops', 'kind', 'retries', 'crashes', 'suspect', 'parent', 'code', 'due',
  'body' }
local bucket_keys = {}

local function bucket_of(task, id)
  local of_task, bucket = bucket_keys[task.id], math.floor(id / BUCKET)
  if not of_task then
    of_task = {}
    bucket_keys[task.id] = of_task
  end
  local key = of_task[bucket]
  if not key then
    key = P .. 'r' .. task.id .. ':' .. bucket
    of_task[bucket] = key
  end
  return key, id % BUCKET
end

local function records_of(task)
  local of_task = S.records[task.id]
  if not of_task then
    of_task = {}
    S.records[task.id] = of_task
  end
  return of_task
end

-- A record is the array as it is kept, under the names of its fields: most are never looked at.
local AT = {}
for at, name in ipairs(FIELDS) do AT[name] = at end
local Record = {
  __index = function(record, name)
    local at = AT[name]
    return at and record.kept[at] or nil -- false stands for nothing
  end,
  __newindex = function(record, name, value)
    local at = AT[name]
    if not at then
      rawset(record, name, value)
      return
    end
    local kept = record.kept
    for gap = #kept + 1, at - 1 do kept[gap] = false end
    kept[at] = value == nil and false or value
  end,
}

local function read_record(task, id, text)
  local record = setmetatable({ id = id, task = task, kept = unpacked(text) }, Record)
  records_of(task)[id] = record
  return record
end

function S.record(task, id)
  local record = records_of(task)[id]
  if record then return record end
  local key, place = bucket_of(task, id)
  return read_record(task, id, call('HGET', key, place))
end

function S.load_records(task, ids)
  -- Neighbours lie in one hash, and are leased together as they were found together.
  local asked, order, of_task = {}, {}, records_of(task)
  for _, id in ipairs(ids) do
    if not of_task[id] then
      local key, place = bucket_of(task, id)
      local wanted = asked[key]
      if not wanted then
        wanted = { ids = {}, places = {} }
        asked[key], order[#order + 1] = wanted, key
      end
      wanted.ids[#wanted.ids + 1], wanted.places[#wanted.places + 1] = id, place
    end
  end
  for _, key in ipairs(order) do
    local wanted = asked[key]
    for at, text in ipairs(call('HMGET', key, unpack(wanted.places))) do read_record(task, wanted.ids[at], text) end
  end
end

local BEHIND_HOST = '\1' -- a URL that begins as its host's do is kept without that

local function base_of(host)
  local default = ({ https = ':443', http = ':80' })[host.scheme]
  local name = host.name
  if default and string.sub(name, -#default) == default then name = string.sub(name, 1, -#default - 1) end
  return host.scheme .. '://' .. name
end

local function shortened(url, host)
  local base = host.name ~= '' and base_of(host)
  if base and string.sub(url, 1, #base) == base then return BEHIND_HOST .. string.sub(url, #base + 1) end
  return url
end

function S.text_of(record)
  -- The URL, and the request where there is one.
  if not record.url then
    local key, place = bucket_of(record.task, record.id)
    local parts = call('HMGET', key, place + BUCKET, place + 2 * BUCKET, place + 3 * BUCKET)
    local text = unpacked(parts[1] .. (parts[2] or '') .. (parts[3] or ''))
    local url = text[1]
    if string.sub(url, 1, 1) == BEHIND_HOST then url = base_of(S.host(record.host)) .. string.sub(url, 2) end
    record.url, record.request = url, text[2]
  end
  return record.url, record.request
end

function S.new_record(task, id, fields)
  local kept = {}
  for at, name in ipairs(FIELDS) do
    local value = fields[name]
    kept[at] = value == nil and false or value
  end
  local record = setmetatable({ id = id, task = task, kept = kept, url = fields.url, request = fields.request, dirty = true,
    rewritten = true, is_new = true }, Record)
  records_of(task)[id] = record
  return record
end

local function pieces(args, place, text)
  for at = 0, 2 do
    local from = at * CHUNK + 1
    if from <= #text then
      args[#args + 1] = place + (at + 1) * BUCKET
      args[#args + 1] = string.sub(text, from, at == 2 and #text or from + CHUNK - 1)
    end
  end
end

local function write_records()
  local writes = {}
  for _, of_task in pairs(S.records) do
    for id, record in pairs(of_task) do
      if record.dirty then
        local kept = record.kept
        for at = #kept, 1, -1 do -- what is nothing need not be kept
          if kept[at] and kept[at] ~= '' then break end
          kept[at] = nil
        end
        local key, place = bucket_of(record.task, id)
        local args = writes[key] or {}
        writes[key] = args
        args[#args + 1] = place
        args[#args + 1] = pack(kept)
        if record.rewritten then
          if not record.is_new then call('HDEL', key, place + 2 * BUCKET, place + 3 * BUCKET) end -- it may be shorter now
          pieces(args, place, pack({ shortened(record.url, S.host(record.host)), record.request }))
        end
      end
    end
  end
  for key, args in pairs(writes) do each_chunk('HSET', key, args, 2) end
end

-- Which keys are known, by linear hashing: one bucket more for every so many keys, split off from one before it.

local function half_of(buckets)
  local half = 1
  while half * 2 <= buckets do half = half * 2 end
  return half
end

local function place_of(key, buckets, half)
  local a, b, c, d = string.byte(key, 1, 4)
  local hash = a + b * 256 + c * 65536 + d * 16777216
  local place = hash % (half * 2)
  if place >= buckets then place = hash % half end
  return place
end

local function bucket_key(task, key)
  if task.halved ~= task.buckets then task.halved, task.half = task.buckets, half_of(task.buckets) end
  return P .. 'k' .. task.id .. ':' .. place_of(key, task.buckets, task.half)
end

function S.known(task, key)
  local id = call('HGET', bucket_key(task, key), key)
  return id and tonumber(id)
end

local function split_bucket(task)
  local from, to = task.buckets - half_of(task.buckets), task.buckets
  local half = half_of(to + 1)
  local old, moved, names = P .. 'k' .. task.id .. ':' .. from, {}, {}
  local pairs_ = call('HGETALL', old)
  for at = 1, #pairs_, 2 do
    if place_of(pairs_[at], to + 1, half) == to then
      moved[#moved + 1] = pairs_[at]
      moved[#moved + 1] = pairs_[at + 1]
      names[#names + 1] = pairs_[at]
    end
  end
  task.buckets = to + 1
  if #names > 0 then
    each_chunk('HSET', P .. 'k' .. task.id .. ':' .. to, moved, 2)
    each_chunk('HDEL', old, names, 1)
  end
end

function S.remember(task, key, id)
  if id > FULL * task.buckets then split_bucket(task) end
  call('HSET', bucket_key(task, key), key, id)
end

-- Queues are written when somebody is about to look at them.

function S.queue_key(task, host) return P .. 'q' .. task.id .. ':' .. host.id end

function S.enqueue(lane, record)
  local key = S.queue_key(lane.task, lane.host)
  local args = S.queued[key]
  if not args then
    args = {}
    S.queued[key] = args
  end
  args[#args + 1] = -record.priority
  args[#args + 1] = number(record.id)
  lane.queued = lane.queued + 1
end

function S.flush()
  for key, args in pairs(S.queued) do each_chunk('ZADD', key, args, 2) end
  S.queued = {}
end

function S.write()
  S.flush()
  S.write_leases()
  write_records()
  write_lanes()
  write_hosts()
  write_counts()
  write_tasks()
  S.write_meta()
end
