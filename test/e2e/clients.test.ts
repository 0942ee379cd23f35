import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testEveryClient } from '../lab/client-behaviours.ts'
import { openLab, type TestLab } from './lab.ts'

let lab: TestLab
let token: string

beforeAll(async () => {
  lab = await openLab()
  token = await lab.token({ sub: 'alice', groups: ['admins', 'dev'] })
})
afterAll(() => lab.close())

describe.each([
  'unauthenticated',
  'header-injection',
  'bearer-token',
  'client-credentials',
  'obo',
  'token-exchange',
  'cloud-sts',
])('the official clients through the proxy, route %s', (route) => {
  testEveryClient(() => ({
    url: `${lab.url}/${route}`,
    backend: lab.backend,
    headers: { authorization: `Bearer ${token}` },
  }))

  test('and every request of theirs was what the backend demands', () => {
    const requests = lab.backend.requests(`/${route}`)
    const methods = new Set(requests.map(({ method }) => method))
    expect(methods).toEqual(new Set(['POST', 'GET', 'DELETE']))
    expect(requests.filter(({ verified }) => verified === undefined)).toEqual([])
  })
})
