import { expect, it } from 'vitest'
import { Secret } from '../../../src/core/index.ts'
import { jsonReply } from '../../../src/ops/index.ts'
import { send, start } from '../../support/ops/start.ts'

const TOKEN = 'admin-token-0123456789'
const HOURS = 3_600_000

it('a session of the page lasts eight hours from the login, used or not', async () => {
  let nowMs = 1_800_000_000_000
  const pages = {
    path: '/inspect',
    isOpen: () => false,
    serve: () => jsonReply(200, {}),
    loginPage: () => ({ headers: {}, body: '' }),
  }
  const guarded = { endpoints: {}, pages, token: () => new Secret(TOKEN) }
  const ops = await start({ address: '0.0.0.0:0', guarded, clock: { now: () => nowMs } })
  try {
    const host = new URL(ops.url).host
    const { headers } = await send(ops.url, '/inspect/login', {
      method: 'POST',
      headers: { host, 'content-type': 'application/json', 'x-extauth-inspect': '1' },
      body: JSON.stringify({ token: TOKEN }),
    })
    const cookie = String(headers['set-cookie']).split(';')[0] ?? ''
    const status = async (): Promise<number> =>
      (await send(ops.url, '/inspect/api/x', { headers: { host, cookie } })).status
    for (const hours of [0, 4, 3.999]) {
      nowMs += hours * HOURS
      expect(await status()).toBe(200)
    }
    nowMs += 0.001 * HOURS
    expect(await status()).toBe(401)
    nowMs -= HOURS
    expect(await status()).toBe(401)
  } finally {
    await ops.close()
  }
})
