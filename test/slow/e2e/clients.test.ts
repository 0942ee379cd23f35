import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testBasics, testEveryClient } from '../../support/lab/client-behaviours.ts'
import { openLab, type TestLab } from '../../support/e2e/lab.ts'

let lab: TestLab
let token: string

beforeAll(async () => {
  lab = await openLab()
  token = await lab.token({ sub: 'alice', groups: ['admins', 'dev'] })
})
afterAll(() => lab.close())

const targetOf = (route: string) => () => ({
  url: `${lab.url}/${route}`,
  backend: lab.backend,
  headers: { authorization: `Bearer ${token}` },
})
const requestsOf = (route: string) => {
  const requests = lab.backend.requests(`/${route}`)
  return {
    methods: new Set(requests.map(({ method }) => method)),
    notVerified: requests.filter(({ verified }) => verified === undefined),
  }
}

// Without a credential, with one in a header, and with one that is computed for each request.
describe.each(['unauthenticated', 'token-exchange', 'cloud-sts'])(
  'the official clients through the proxy, route %s',
  (route) => {
    testEveryClient(targetOf(route))

    test('and every request of theirs was what the backend demands', () => {
      expect(requestsOf(route)).toEqual({ methods: new Set(['POST', 'GET', 'DELETE']), notVerified: [] })
    })
  },
)

// These differ in a header only, which does not affect clients.
describe.each(['header-injection', 'bearer-token', 'client-credentials', 'obo'])(
  'the official clients reach the route %s',
  (route) => {
    testBasics(targetOf(route))

    test('and every request of theirs was what the backend demands', () => {
      expect(requestsOf(route)).toEqual({ methods: new Set(['POST', 'GET']), notVerified: [] })
    })
  },
)
