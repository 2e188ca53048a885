-- Settles: the one place where an attempt ends, and everything that becomes true with it.

local function is_page(lease, outcome)
  return lease.record and lease.kind == PAGE and outcome.verdict == DONE and outcome.code ~= 'redirected'
end

-- The lease, if the token is good. A late one of an ended task frees its slot, and its host was asked: nothing else.
local function honour(session, outcome)
  local lease = G.lease(outcome.number)
  if not lease then
    local named = S.named(outcome.task)
    if named then S.count(named, 'stale', 1) end
    return nil
  end
  local task = S.task(lease.task)
  if lease.session == session and not S.is_over(task) then return lease end
  S.count(task, 'stale', 1)
  if lease.session == session then
    H.obey(S.host(lease.host), nil, outcome.sent_ago)
    G.give_back(lease)
  end
  return nil
end

local function retry(record, outcome)
  if outcome.burned then record.retries = record.retries + 1 end
  if outcome.crashed then record.crashes, record.suspect = record.crashes + 1, true end
  if outcome.priority then
    record.priority = outcome.priority
    record.task.lowest = math.min(record.task.lowest, outcome.priority)
  end
  if outcome.request then
    S.text_of(record)
    record.request, record.rewritten = outcome.request, true
  end
  record.dirty = true
  if record.kind ~= SEED then S.count(record.task, 'retried', 1) end
  R.give_back(record, outcome.delay)
end

-- The slot, the host and the record; the rest follows when all outcomes of the call came so far.
local function end_attempt(lease, outcome)
  G.free(lease)
  H.obey(S.host(lease.host), outcome.host, outcome.sent_ago)
  if not lease.record then return end
  local task = S.task(lease.task)
  local record = S.record(task, lease.record)
  task.items = task.items + #outcome.items
  S.count(task, 'items', #outcome.items)
  if STATE[outcome.verdict] then
    R.finish(record, outcome.verdict, outcome.code)
    record.body = outcome.body or record.body
    if outcome.verdict == FAILED then task.errors = task.errors + 1 end
    if is_page(lease, outcome) then
      local lane = R.lane_of(record)
      task.pages, lane.pages = task.pages + 1, lane.pages + 1
    end
  elseif outcome.verdict == 0 then
    retry(record, outcome)
  else
    R.give_back(record)
  end
end

-- First the hosts that were given up, then those whose page budget is spent; the last word stays.
local function close_lanes(settled)
  for _, pair in ipairs(settled) do
    local lease, order = pair[1], pair[2].host
    local host = S.host(lease.host)
    if order and order.give_up and order.give_up ~= '' and host.name ~= '' then
      R.close_lane(S.lane(S.task(lease.task), host), FAILED, order.give_up)
    end
  end
  for _, pair in ipairs(settled) do
    if is_page(pair[1], pair[2]) then
      local lane = S.lane(S.task(pair[1].task), S.host(pair[1].host))
      if G.is_spent(lane) then R.close_lane(lane, SKIPPED, 'budget') end
    end
  end
end

local function log_items(task, items)
  for _, item in ipairs(items) do
    S.meta.items = S.meta.items + 1
    task.logged = task.logged + 1
    if item.key then
      call('XADD', P .. 'i' .. task.id, exact(S.meta.items) .. '-0', 'd', item.data, 'k', item.key)
    else
      call('XADD', P .. 'i' .. task.id, exact(S.meta.items) .. '-0', 'd', item.data)
    end
  end
end

-- Task by task, in the order in which the call met them: links, items, counters, samples.
local function take_effects(settled)
  local order, by_task = {}, {}
  for _, pair in ipairs(settled) do
    if pair[1].record then
      local id = pair[1].task
      if not by_task[id] then
        by_task[id] = {}
        order[#order + 1] = id
      end
      table.insert(by_task[id], pair)
    end
  end
  for _, id in ipairs(order) do
    local task = S.task(id)
    for _, pair in ipairs(by_task[id]) do
      local outcome = pair[2]
      R.push(task, outcome.links, pair[1].record)
      log_items(task, outcome.items)
      for name, by in pairs(outcome.counts) do S.count(task, name, by) end
      for _, sample in ipairs(outcome.samples) do S.keep_sample(task, sample[1], sample[2]) end
    end
  end
end

local function settle(session, outcomes, answer)
  local settled = {}
  answer.stale = {}
  for _, outcome in ipairs(outcomes) do
    local lease = honour(session, outcome)
    if lease then
      end_attempt(lease, outcome)
      settled[#settled + 1] = { lease, outcome }
      R.check_limits(S.task(lease.task))
    else
      answer.stale[#answer.stale + 1] = outcome.number
    end
  end
  close_lanes(settled)
  take_effects(settled)
  R.account_given_up()
  for _, task in pairs(S.tasks) do R.check_end(task) end
  H.refresh()
end

-- The worker knew another life of this store: what it left out as known may be gone. Its pages are fetched again.
local function give_all_back(session, outcomes, answer)
  answer.stale = {}
  for _, outcome in ipairs(outcomes) do
    answer.stale[#answer.stale + 1] = outcome.number
    local lease = G.lease(outcome.number)
    if lease and lease.session == session then
      H.obey(S.host(lease.host), nil, outcome.sent_ago)
      G.give_back(lease)
      S.count(S.task(lease.task), 'stale', 1)
    end
  end
  R.account_given_up()
  H.refresh()
end
