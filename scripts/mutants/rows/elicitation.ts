import { within } from '../mutation.ts'

const REQUESTS = ['test/unit/elicitation/requests.test.ts']
const STATES = ['test/unit/elicitation/request-state.test.ts']
const CLIENTS = ['test/unit/elicitation/clients.test.ts']

/** Guards of `src/elicitation`. */
export default [
  ...within('src/elicitation/request-state.ts', STATES, [
    ['a state is of its caller', 'state.owner !== ownerOf(request.caller) ||', ''],
    ['a state is of its route', 'state.route !== request.route ||', ''],
    ['a state is of its request', 'state.digest !== digestOf(request)', 'state.digest === undefined'],
    ['a state is of its method', 'JSON.stringify([method, compared])', 'JSON.stringify(compared)'],
    ['a state expires', 'retry: clock.now() < endsAtMs ? retry : undefined', 'retry'],
    ['a further prompt extends no state', 'before?.endsAtMs ?? clock.now() + VALID_MS', 'clock.now() + VALID_MS'],
    ['a state that was changed is refused', 'state === undefined ||', '', REQUESTS],
    [
      'a state of the backend is not ours',
      "typeof text !== 'string' || !text.startsWith(CONNECT_STATE)",
      "typeof text !== 'string'",
    ],
  ]),
  ...within('src/elicitation/elicitation.ts', CLIENTS, [
    [
      'the backend never gets the fields of a retry',
      "if (isOurs) known.matched.body = { kind: 'kept', bytes: removeParams(body, RETRY_FIELDS) }",
      '',
    ],
    ['three prompts for one request', '(retry?.prompts ?? 0) < MOST_PROMPTS', 'true'],
    ['a person who declined is not asked again', 'ASKABLE.has(method) && !prompt.isRefused', 'ASKABLE.has(method)'],
    [
      'the backend gets its own session id',
      'if (session.backendId !== undefined) headers[index] = session.backendId',
      '',
    ],
    [
      'a placeholder session ends with the connection',
      'if (session !== undefined && session.backendId === undefined)',
      'if (session === undefined)',
    ],
    ['only a client that opens URLs hears of the prompt', 'if (session?.mark === OPENS_URLS) insert', 'insert'],
    ['a placeholder session is bound to its caller', 'prepared.get(known)?.bind?.(session) ?? session', 'session'],
  ]),
]
