import { afterAll, beforeAll, describe } from 'vitest'
import type { Lab } from '../../src/commands/lab-compose.ts'
import { testEveryClient } from './client-behaviours.ts'
import { callerHeaders, startTestLab } from './proxied.ts'

let lab: Lab
let headers: Record<string, string>

beforeAll(async () => {
  lab = await startTestLab()
  headers = await callerHeaders(lab, { sub: 'alice', groups: ['admins', 'dev'], ttlSeconds: 3600 })
})
afterAll(() => lab.close())

describe.each(['unauthenticated', 'header-injection', 'bearer-token', 'token-exchange', 'cloud-sts'])(
  'the official clients through the proxy, on a route of type %s',
  (route) => {
    const isOpen = route === 'unauthenticated' || route === 'header-injection'
    testEveryClient(() => ({ url: `${lab.url}/${route}`, headers: isOpen ? {} : headers, backend: lab.backend }))
  },
)
