import { within } from '../mutation.ts'

const EMBEDDED = ['test/unit/connections/embedded.test.ts']
const FAILURES = ['test/slow/connections/failures.test.ts']
const FLOW = ['test/unit/connections/flow.test.ts']
const KEYS = ['test/unit/connections/keys.test.ts']
const MANAGE = ['test/unit/connections/manage.test.ts']
const BOUNDS = ['test/unit/connections/bounds.test.ts']
const PERSONS = ['test/unit/connections/persons.test.ts']

/** Guards of `src/connections`. */
export default [
  ...within('src/connections/owner.ts', FLOW, [
    [
      'a subject of another issuer is another person',
      '{ issuer: caller.issuer, identity: caller.identity }',
      "{ issuer: '', identity: caller.identity }",
    ],
    [
      'a connection is of one person',
      'JSON.stringify([issuer, identity, provider])',
      'JSON.stringify([issuer, provider])',
    ],
  ]),
  ...within('src/connections/persons.ts', PERSONS, [
    [
      'a link is only for the person of the caller',
      'Object.hasOwn(claims, name) && claims[name] === value',
      'Object.hasOwn(claims, name) && value !== undefined',
      FLOW,
    ],
    ['every claim must be equal', 'entries.every(([name, value]) =>', 'entries.some(([name, value]) =>'],
    ['a link without claims is for no person', 'entries.length > 0 && ', ''],
    ['an empty claim proves no person', "(typeof value !== 'string' || value === '')", "typeof value !== 'string'"],
    [
      'a list proves no person',
      "if ((typeof value !== 'string' || value === '') && typeof value !== 'number')",
      "if (value === '' || value == null)",
    ],
    ['inherited claims prove no person', 'Object.hasOwn(claims, name) ? claims[name] : undefined', 'claims[name]'],
    [
      'people are found at their issuer only',
      'JSON.stringify([issuer, Object.entries(match ?? {})',
      'JSON.stringify([Object.entries(match ?? {})',
    ],
  ]),
  ...within('src/connections/tickets.ts', FLOW, [
    ['a link is used once', 'await store.take(key))', 'await store.get(key))'],
    ['a link lasts ten minutes', 'const TICKET_MS = 10 * 60_000', 'const TICKET_MS = 20 * 60_000'],
    [
      'a link is shown to its person only',
      'JSON.stringify([connectionName(owner, need.provider), scopes])',
      'JSON.stringify([need.provider, scopes])',
    ],
    ['ten links a minute', 'if (known.count >= MOST_PER_MINUTE)', 'if (known.count < 0)'],
    [
      'after a link was used, the next prompt has a new one',
      'await store.delete(found.promptKey)',
      'await Promise.resolve()',
    ],
  ]),
  ...within('src/connections/flow.ts', FLOW, [
    [
      'opening a link uses nothing up',
      "const ticket = await tickets.peek(link)\n    if (ticket === undefined) {\n      refuse('unknown', visit)\n      return unknownLinkPage(visit.requestId)\n    }\n    const { flow, setCookies }",
      "const ticket = await tickets.consume(link)\n    if (ticket === undefined) {\n      refuse('unknown', visit)\n      return unknownLinkPage(visit.requestId)\n    }\n    const { flow, setCookies }",
    ],
    [
      'a used link is over',
      'const consumed = await tickets.consume(link)\n      if (consumed === undefined) return unknownLinkPage(visit.requestId)\n      const endsAtMs',
      'const consumed = await tickets.peek(link)\n      if (consumed === undefined) return unknownLinkPage(visit.requestId)\n      const endsAtMs',
    ],
    ['a canceled link is over', "refuse('canceled', visit, await tickets.consume(link))", "refuse('canceled', visit)"],
    [
      'the link of a key is used once',
      'const consumed = await tickets.consume(link)\n        return consumed',
      'const consumed = await tickets.peek(link)\n        return consumed',
      KEYS,
    ],
    [
      'the person is checked before consent',
      '|| !isPerson(ticket.match, claims))',
      '&& !isPerson(ticket.match, claims))',
    ],
  ]),
  ...within('src/authserver/login/person-logins.ts', EMBEDDED, [
    ['a login of another person saves nobody one', 'found.subject === subject ? found', 'true ? found'],
    ['a proof is for one redirect', 'if (proof?.state !== state)', 'if (proof === undefined)'],
    ['a remembered login ends', 'clock.now() < value.endsAtMs ? value', 'value.endsAtMs > 0 ? value'],
    ['a remembered login ends with its session', ' || isEnded(found.tsid)', ''],
  ]),
  ...within('src/authserver/login/pending.ts', FLOW, [
    [
      'a response counts only in the browser that opened the link',
      '`${flow.id}.${flow.secret}.${token}`',
      '`${flow.id}.${token}`',
    ],
  ]),
  ...within('src/connections/api-keys.ts', KEYS, [
    ['a key matches its pattern', ' || !isKey(key))', ')'],
    ['a key fits into a header', ' || !KEY.test(key)', ''],
    ['a key is short', ' || key.length > MOST_CHARACTERS', ''],
    ['a key is tried', 'test.expect.includes(status)) return undefined', 'status !== 0) return undefined'],
    [
      'a key is not wrong because the service is down',
      'status !== undefined && status !== 429 && status < 500',
      'status !== undefined',
      FAILURES,
    ],
  ]),
  ...within('src/connections/accounts.ts', FLOW, [
    ['a session is of the person of the connection', 'if (subject !== name) throw', "if (subject === '') throw"],
    [
      'a connection ends after maxAge',
      'nowMs + maxAgeMs(byName.get(provider) ?? unknownProvider(provider))',
      'nowMs + Infinity',
    ],
    [
      'what could not be deleted while the store was down is deleted later',
      'void (leftOver.size < MOST_LEFT_OVER && leftOver.add(id))',
      'undefined',
      FAILURES,
    ],
    [
      'the old tokens end with the connection that replaces them',
      'await sessions.lose(before.id)',
      'await Promise.resolve()',
    ],
    ['a rejected fresh token ends the connection', '|| (await broken(ref, id))', '|| true'],
    [
      'a second 401 within a minute breaks a key',
      'if (keyRefusals.get(id) !== undefined) return broken(ref, id)',
      '',
      KEYS,
    ],
    [
      'a rejection of an older key does not break the new one',
      'if (!held.accessToken.equals(refused.token)) return true',
      '',
      KEYS,
    ],
    [
      'tokens of a connection that ended are revoked',
      'const ended = await sessions.end(pointer.id)',
      'await sessions.lose(pointer.id)\n      const ended = { revocation: Promise.resolve(new Map<string, RevocationOutcome>()) }',
      MANAGE,
    ],
  ]),
  ...within('src/connections/pointers.ts', BOUNDS, [
    [
      'a deleted connection is gone from the store',
      'result === undefined ? undefined : { connections, result }',
      'result === undefined ? undefined : { connections: { ...connections, [provider]: result }, result }',
      MANAGE,
    ],
    ['a person has at most 100 connections', 'others.length >= MOST_PER_PERSON', 'others.length > MOST_PER_PERSON'],
    ['all people have at most 100,000', "if (outcome === 'full') throw full(ALL_FULL)", ''],
    ['a connection keeps its place', 'evicts: false }', 'evicts: true }'],
    [
      'a deleted connection frees its place',
      'if (changed !== undefined) await free(changed.caller, provider, changed.result.id)',
      '',
    ],
    ['a replaced connection frees its place', 'if (before !== undefined) await free(caller, provider, before.id)', ''],
    ['one without room leaves no place behind', 'await store.remove(CONNECTED, member).catch(() => undefined)', ''],
    [
      'a connection that was replaced is not broken',
      'if (pointer?.id !== id) return false',
      'if (pointer === undefined) return false',
    ],
    [
      'places are renewed with the record',
      'await store.touch(CONNECTED, memberOf(record.caller, provider, pointer.id), lifeOf(pointer))',
      'await Promise.resolve()',
    ],
  ]),
  ...within('src/connections/manage.ts', MANAGE, [
    ['a form of another person ends nothing', ' || !timingSafeEqual(given, own)', ''],
    ['the form does one thing', 'if (action === undefined || others.length > 0)', 'if (action === undefined)'],
    ['a visit ends', 'clock.now() < visitor.endsAtMs ?', 'visitor.endsAtMs > 0 ?'],
    [
      'people see their own connections only',
      'persons.find(issuer, match)',
      "persons.find(issuer, { ...match, sub: 'user-1' })",
    ],
  ]),
]
