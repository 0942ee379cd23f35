import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ANONYMOUS, documents, type Folder, openFolder } from '../../../support/examine/check/rig.ts'

let folder: Folder
beforeAll(async () => {
  folder = await openFolder()
  await folder.write(
    'proxy.yaml',
    documents({ target: 'https://mcp.example.com/mcp' }, { type: 'unauthenticated' }, { auth: ANONYMOUS }),
  )
})
afterAll(() => folder.remove())

/** The result of `check` for the connection behind this egress proxy. */
async function connectionBehind(proxy: string) {
  const { checks } = await folder.checkIn({ HTTPS_PROXY: `http://${proxy}` })
  return checks.find(({ check }) => check === 'target.connection')
}

/** An egress proxy that answers CONNECT with this status. */
async function refusing(status: number) {
  const server = createServer().on('connect', (_request, socket) => socket.end(`HTTP/1.1 ${status} No\r\n\r\n`))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { address: `127.0.0.1:${port}`, close: () => new Promise((resolve) => server.close(resolve)) }
}

it.each([
  [403, /Allow this host in the egress proxy/],
  [407, /HTTPS_PROXY=http:\/\/USER:PASSWORD@HOST:PORT/],
])('an egress proxy that answers %s is named, with what it answered', async (status, remedy) => {
  const proxy = await refusing(status)
  expect(await connectionBehind(proxy.address)).toEqual({
    check: 'target.connection',
    subject: 'mcp.example.com',
    status: 'failed',
    detail: `the egress proxy ${proxy.address} returned ${status}`,
    remedy: expect.stringMatching(remedy) as string,
  })
  await proxy.close()
})

it('an egress proxy that is not there is named, and not the backend', async () => {
  const proxy = await refusing(500)
  await proxy.close()
  expect(await connectionBehind(proxy.address)).toMatchObject({
    status: 'failed',
    detail: `ECONNREFUSED at the egress proxy ${proxy.address}`,
    remedy: expect.stringContaining('correct HTTPS_PROXY') as string,
  })
})
