-- Sessions: a worker's life, one member with its last beat. Whatever ends it, its leases go back.

local V = {}

local function pause(hosts)
  -- Nobody knows when the lost requests went out: the next one waits as if that was now.
  for id in pairs(hosts) do
    local host = S.host(id)
    if host.name ~= '' then host.next_turn = math.max(host.next_turn, S.now + H.delay(host, H.asking(host))) end
  end
end

local function held_by(sessions)
  local held = {}
  for _, lease in ipairs(G.all()) do
    if sessions[lease.session] then held[#held + 1] = lease end
  end
  return held
end

local function return_all(leases, pausing, lost)
  local hosts, tasks = {}, {}
  for _, lease in ipairs(leases) do
    hosts[lease.host], tasks[lease.task] = true, true
    if lost and lease.record then S.record(S.task(lease.task), lease.record).suspect = true end
    G.give_back(lease)
  end
  R.account_given_up()
  if pausing then pause(hosts) end
  for id in pairs(tasks) do R.check_end(S.task(id)) end
  H.refresh()
end

local function end_session(session)
  call('ZREM', P .. 'z', session)
  call('HDEL', P .. 'w', session)
  call('HDEL', P .. 'a', session)
end

function V.is_alive(session) return call('ZSCORE', P .. 'z', session) ~= false end

function V.open(session, worker)
  call('ZADD', P .. 'z', exact(S.now), session)
  call('HSET', P .. 'w', session, worker)
end

function V.beat(session)
  if not V.is_alive(session) then return false end
  call('ZADD', P .. 'z', exact(S.now), session)
  return true
end

function V.release(session, numbers)
  local held, chosen = held_by({ [session] = true }), {}
  local wanted
  if numbers then
    wanted = {}
    for _, n in ipairs(numbers) do wanted[n] = true end
  end
  for _, lease in ipairs(held) do
    if not wanted or wanted[lease.number] then chosen[#chosen + 1] = lease end
  end
  return_all(chosen, false, false)
  return #chosen
end

function V.close(session)
  return_all(held_by({ [session] = true }), true, false)
  end_session(session)
end

function V.reap()
  local dead, gone = call('ZRANGEBYSCORE', P .. 'z', '-inf', '(' .. exact(S.now - TTL)), {}
  if #dead == 0 then return 0 end
  for _, session in ipairs(dead) do gone[session] = true end
  local lost = held_by(gone)
  for _, session in ipairs(dead) do end_session(session) end
  return_all(lost, true, true)
  return #dead
end
