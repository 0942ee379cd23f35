import { within } from '../mutation.ts'

const FLOW = ['test/unit/connections/flow.test.ts']

/** Guards of `src/connections`. */
export default [
  ...within('src/connections/persons.ts', FLOW, [
    [
      'a link is only for the person of the caller',
      'Object.hasOwn(claims, name) && claims[name] === value',
      'Object.hasOwn(claims, name) && value !== undefined',
    ],
  ]),
  ...within('src/connections/flow.ts', FLOW, [
    [
      'opening a link uses nothing up',
      "const ticket = await tickets.peek(link)\n    if (ticket === undefined) {\n      refuse('unknown')\n      return unknownLinkPage(visit.requestId)\n    }\n    const { flow, setCookies }",
      "const ticket = await tickets.consume(link)\n    if (ticket === undefined) {\n      refuse('unknown')\n      return unknownLinkPage(visit.requestId)\n    }\n    const { flow, setCookies }",
    ],
    [
      'a used link is over',
      'const consumed = await tickets.consume(link)\n      if (consumed === undefined) return unknownLinkPage(visit.requestId)\n      const endsAtMs',
      'const consumed = await tickets.peek(link)\n      if (consumed === undefined) return unknownLinkPage(visit.requestId)\n      const endsAtMs',
    ],
  ]),
  ...within('src/connections/accounts.ts', FLOW, [
    [
      'cached credentials are checked against what has ended',
      'onEnded: (id) => pointers.forget(id),',
      'onEnded: () => undefined,',
    ],
  ]),
  ...within(
    'src/connections/manage.ts',
    ['test/unit/connections/manage.test.ts'],
    [['a form of another person ends nothing', ' || !timingSafeEqual(given, own)', '']],
  ),
]
