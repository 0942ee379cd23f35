import { afterEach, describe, expect, it } from 'vitest'
import { type Credential, Secret } from '../../../src/core/index.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRoute, runtimeOf, startProxy } from '../../support/proxy/harness.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const EXPIRED = JSON.stringify({ __type: 'ExpiredTokenException', message: 'theirs' })
const aws: Credential = {
  kind: 'aws',
  accessKeyId: 'ASIATESTTESTTEST0001',
  secretAccessKey: new Secret('secret'),
  sessionToken: new Secret('session'),
  region: 'eu-central-1',
  service: 'aws-mcp',
  signing: { day: '', key: undefined },
}

/** A proxy before a backend that refuses each signed request with `status`; how often it was asked, and what came back. */
async function rejected(status: number, isFresh: boolean) {
  let asked = 0
  const origin = await sockets.http((request, response) => {
    asked += 1
    request.resume().on('end', () => response.writeHead(status, { 'content-type': 'application/json' }).end(EXPIRED))
  })
  const route = createRoute(sockets, origin, {
    type: 'cloudSts',
    needsBody: true,
    credential: () => aws,
    reject: () => !isFresh,
    isFreshAfterRejection: () => isFresh,
  })
  const { url } = await startProxy(sockets, runtimeOf([route]))
  const response = await fetch(url, { method: 'POST', body: '{}' })
  return { asked: () => asked, status: response.status, body: await response.text() }
}

describe('a credential that replaced a refused one a moment ago', () => {
  it.each([400, 403])(
    'and is refused with %i: the answer passes with its body, nothing is repeated',
    async (status) => {
      const answer = await rejected(status, true)
      expect([answer.status, answer.body, answer.asked()]).toEqual([status, EXPIRED, 1])
    },
  )

  it('and is refused with 401 is 502', async () => {
    const answer = await rejected(401, true)
    expect([answer.status, answer.asked()]).toEqual([502, 1])
    expect(answer.body).toContain('backend_rejected_credential')
  })
})

it.each([400, 403])('another one that is refused with %i is replaced, and then the answer passes', async (status) => {
  const answer = await rejected(status, false)
  expect([answer.status, answer.body, answer.asked()]).toEqual([status, EXPIRED, 2])
})
