import { afterEach, describe, expect, it } from 'vitest'
import type { Ops } from '../../../src/ops/index.ts'
import { rawConnect } from '../../support/raw.ts'
import { start } from '../../support/ops/start.ts'

let ops: Ops | undefined
afterEach(() => ops?.close())

describe('a body beyond what the admin listener takes', () => {
  it('is rejected with a response, however much its client sends before it reads', async () => {
    ops = await start({ guarded: { endpoints: { 'POST /reload': () => ({ status: 200, json: {} }) } } })
    const length = 8_000_000
    const client = rawConnect(ops.url, '')
    client.socket.pause()
    client.socket.write(
      `POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
    )
    for (let sent = 0; sent < 8; sent++) client.socket.write(Buffer.alloc(1_000_000))
    await new Promise((resolve) => client.socket.write('', resolve))
    client.socket.resume()
    expect(await client.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 413 /)
    expect(await client.ended).toBe('end')
  })
})
