import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createAgent, send } from '../../../endure/callers/client.ts'
import { type Gate, openGate } from '../../../endure/world/gate.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
const BODY = 'x'.repeat(5_000)
let gate: Gate
let service: Server
let asked = 0

beforeEach(async () => {
  asked = 0
  service = createServer((_request, response) => {
    asked += 1
    response.end(BODY)
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  sockets.closing({
    close: async () => {
      service.closeAllConnections()
      await new Promise((resolve) => service.close(resolve))
    },
  })
  gate = sockets.closing(await openGate({ slowMs: 20 }))
  gate.target = (service.address() as { port: number }).port
})
afterEach(() => sockets.closeAll())

const ask = async (more: { leaveAfterMs?: number } = {}) => {
  const agent = createAgent()
  try {
    return await send(agent, { url: gate.url, method: 'GET', headers: {}, ...more })
  } finally {
    await agent.destroy()
  }
}

it('lets whole answers through while it is open, and late while it is slow', async () => {
  expect(await ask()).toMatchObject({ status: 200, text: BODY, cut: undefined })
  gate.set('slow')
  expect(await ask()).toMatchObject({ status: 200, text: BODY, cut: undefined })
})

it('refuses while it is down, and cuts what is open', async () => {
  gate.set('down')
  expect(await ask()).toMatchObject({ status: 0, cut: expect.stringMatching(/ECONNRESET|socket/i) as string })
  expect(asked).toBe(0)
  gate.set('open')
  expect(await ask()).toMatchObject({ status: 200 })
})

it('cuts an answer in the middle so that a client can tell', async () => {
  gate.set('torn')
  const { cut, text } = await ask()
  expect(cut).toBeDefined()
  expect(text.length).toBeLessThan(BODY.length)
  expect(asked).toBe(1)
})

it('answers what no client may accept', async () => {
  gate.set('wrong')
  expect((await ask()).cut).toBeDefined()
  expect(asked).toBe(0)
})

it('says nothing while it is silent, until the client has had enough', async () => {
  gate.set('silent')
  expect(await ask({ leaveAfterMs: 50 })).toMatchObject({ status: 0, text: '', cut: undefined })
  expect(asked).toBe(0)
})

it('cuts what has lost bytes while it was silent when it opens again', async () => {
  gate.set('silent')
  const waiting = ask()
  const beside = connect(gate.port, '127.0.0.1').on('error', () => undefined)
  await once(beside, 'connect')
  // Only what waits at the gate has lost anything: who has sent nothing goes on.
  await vi.waitFor(() => expect(gate.lost).toBe(1))
  gate.set('open')
  expect(await waiting).toMatchObject({ status: 0, cut: expect.stringMatching(/ECONNRESET|socket/i) as string })
  beside.write('GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n')
  const [first] = (await once(beside, 'data')) as [Buffer]
  expect(first.toString()).toMatch(/^HTTP\/1\.1 200/)
  beside.destroy()
  expect(asked).toBe(1)
})
