import type { IncomingMessage, ServerResponse } from 'node:http'
import { decodeJwt } from 'jose'
import { request as undici } from 'undici'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { meanwhile } from '../../support/meanwhile.ts'
import { createSockets } from '../../support/sockets.ts'
import { type CredentialsWorld, openCredentialsWorld } from '../../support/e2e/credentials.ts'

/** Concurrent calls to a service, and the guaranteed share of one caller. */
const PLACES = 64
const SHARE = 4
/** Of callers whose calls hang: places for one caller more are left. */
const HANGING = PLACES / SHARE - 1
const GOOD = 30

const sockets = createSockets()
let world: CredentialsWorld
/** Calls that are held, of callers whose names begin with `hanging`. */
const held: ServerResponse[] = []

/** The response of each service to a rejected call. */
const refuse = (response: ServerResponse, isSts: boolean): void => {
  if (isSts)
    response.writeHead(403, { 'content-type': 'text/xml' }).end(
      '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code>\
<Message>Not authorized</Message></Error><RequestId>1</RequestId></ErrorResponse>',
    )
  else
    response
      .writeHead(400, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      .end('{"error":"invalid_grant"}')
}

/** A proxy before a demo service: holds or rejects the calls of some callers, and forwards all others. */
const front = (url: string): Promise<string> =>
  sockets.http((request, response) => {
    void (async () => {
      const body = await textOf(request)
      const form = new URLSearchParams(body)
      const token = form.get('subject_token') ?? form.get('WebIdentityToken') ?? ''
      const { sub = '' } = decodeJwt(token)
      if (sub.startsWith('hanging')) {
        held.push(response)
        return
      }
      if (sub.startsWith('refused')) {
        refuse(response, form.has('WebIdentityToken'))
        return
      }
      const { 'content-type': type = '', authorization } = request.headers
      const headers = { 'content-type': type, ...(authorization === undefined ? {} : { authorization }) }
      // A new connection: the demo service may close an idle one at the moment of use.
      const answer = await undici(url, { method: 'POST', headers, body, reset: true })
      response.writeHead(answer.statusCode, { 'content-type': String(answer.headers['content-type'] ?? '') })
      response.end(await answer.body.text())
    })()
  })

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

// Of each try: what calls that hung for too long leave behind (rest for the service) is nothing to the next.
beforeEach(async () => {
  held.length = 0
  world = await openCredentialsWorld({ before: front })
})
afterEach(async () => {
  await world.close()
  await sockets.closeAll()
})

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** So many callers, or tokens of each; all of them come from one address, as of a balancer. */
const callersOf = (name: string, count: number, tokensOfEach = 1): Promise<Record<string, string>[]> =>
  Promise.all(
    range(count).flatMap((caller) =>
      range(tokensOfEach).map((device) =>
        world.bearer({ sub: `${name}-${caller}`, groups: ['dev'], claims: { device: String(device) } }),
      ),
    ),
  )

describe.each([
  ['the token endpoint', 'one', 401],
  ['STS', 'aws', 403],
])('callers behind one address, before %s', (_what, route, refusedStatus) => {
  it('are all served while calls of others hang, refused ones come in between, and many wait', async () => {
    const hangers = await callersOf('hanging', HANGING, 2 * SHARE)
    const strangers = await callersOf('refused', GOOD)
    const friends = await callersOf('good', GOOD)
    const call = (bearer: Record<string, string>) => world.status(route, bearer)

    const hanging = hangers.map(call)
    await vi.waitFor(() => expect(held.length).toBeGreaterThanOrEqual(HANGING * SHARE), 10_000)
    const refused = strangers.map(call)
    expect(new Set(await Promise.all(friends.map(call)))).toEqual(new Set([200]))
    expect(new Set(await Promise.all(refused))).toEqual(new Set([refusedStatus]))
    expect(held.filter(({ destroyed }) => !destroyed).length, 'calls that still hang').toBeGreaterThan(0)

    const refuseHeld = () => {
      for (const response of held.splice(0)) refuse(response, route === 'aws')
    }
    expect(new Set(await meanwhile(10, refuseHeld, hanging))).toEqual(new Set([refusedStatus]))
  }, 60_000)
})
