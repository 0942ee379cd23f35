import { afterAll, beforeAll, expect, it } from 'vitest'
import { ANONYMOUS, documents, type Folder, openFolder, site } from '../../../support/examine/check/rig.ts'

let folder: Folder
beforeAll(async () => void (folder = await openFolder()))
afterAll(() => folder.remove())

const RESULT = { protocolVersion: '2025-11-25', capabilities: {} }

it.each([
  ['is no MCP result', 200, { id: 1, result: { ok: true } }, /status 200, a JSON-RPC result without protocolVersion$/],
  ['answers another request', 200, { id: 2, result: RESULT }, /status 200$/],
  ['comes with an error status', 500, { id: 1, result: RESULT }, /status 500$/],
])('extauth check takes no answer that %s', async (_, status, message, detail) => {
  const backend = await site({ '/mcp': () => ({ status, body: { jsonrpc: '2.0', ...message } }) })
  const auth = { type: 'unauthenticated' }
  await folder.write('proxy.yaml', documents({ target: `${backend.url}/mcp` }, auth, { auth: ANONYMOUS }))
  const { checks, code } = await folder.check()
  await backend.close()
  expect(checks.filter((each) => each.status === 'failed')).toMatchObject([{ check: 'mcp' }])
  expect(checks.find((each) => each.check === 'mcp')?.detail).toMatch(detail)
  expect(code).toBe(1)
})
