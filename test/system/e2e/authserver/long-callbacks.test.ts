import { get } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { createSockets } from '../../../support/sockets.ts'
import { createProgram } from '../../../support/e2e/authserver/program.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const KIB = 1024

/** As a browser that comes back: fetch has a bound of its own. */
const ask = (
  url: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; type: string; text: string }> =>
  new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk)).on('error', reject)
      const { statusCode: status = 0, headers: answered } = response
      response.on('end', () => resolve({ status, type: answered['content-type'] ?? '', text }))
    }).on('error', reject)
  })

const PAGE = {
  status: 431,
  type: 'text/html; charset=utf-8',
  text: expect.stringContaining('Delete the cookies') as string,
}
const JSON_431 = { status: 431, type: 'application/json', text: expect.stringContaining('too large') as string }

it('the started program answers an oversized callback with a page, and all other requests as usual', async () => {
  const { url } = await openWorld(sockets, { start: createProgram().start })
  const callback = `${url}/mcp/oauth/callback`
  // The header limit is 16 KiB.
  expect(await ask(`${callback}?state=a&code=${'c'.repeat(8 * KIB)}`)).toMatchObject({ status: 400, type: PAGE.type })
  expect(await ask(`${callback}?state=a&code=${'c'.repeat(17 * KIB)}`)).toEqual(PAGE)
  expect(await ask(`${callback}?state=a&code=${'c'.repeat(60 * KIB)}`)).toEqual(PAGE)
  expect(await ask(`${callback}?state=a&code=b`, { cookie: `a=${'c'.repeat(17 * KIB)}` })).toEqual(PAGE)
  expect(await ask(`${callback}?state=a&code=${'c'.repeat(90 * KIB)}`)).toEqual(JSON_431)
  for (const other of ['/mcp', '/oauth/token', '/oauth/register', '/mcp/oauth/callback/x', '/none'])
    expect({ other, ...(await ask(`${url}${other}?a=${'c'.repeat(17 * KIB)}`)) }).toEqual({ other, ...JSON_431 })
})
