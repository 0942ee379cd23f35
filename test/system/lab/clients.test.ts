import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LabBackend, startLabBackend } from '../../../lab/index.ts'
import { testEveryClient } from '../../support/lab/client-behaviours.ts'

let backend: LabBackend

beforeAll(async () => {
  backend = await startLabBackend({
    port: 0,
    mounts: { '/open': { kind: 'none' } },
    clock: { now: () => Date.now() },
  })
})
afterAll(() => backend.close())

describe("the official clients at the lab's MCP server", () => {
  testEveryClient(() => ({ url: `${backend.url}/open/mcp`, backend }))

  test('the tool fail_with_status is answered with a bare HTTP status', async () => {
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'fail_with_status', arguments: { status: 503 } },
    }
    const response = await fetch(`${backend.url}/open/mcp`, { method: 'POST', body: JSON.stringify(call) })
    expect([response.status, await response.json()]).toEqual([503, { error: 'as_demanded', status: 503 }])
  })

  test('a request is recorded as it came over the wire', async () => {
    backend.forget()
    await fetch(`${backend.url}/open/mcp?a=%7E&b`, {
      method: 'POST',
      headers: { 'X-Some': 'Thing' },
      body: '{"not":"mcp"}',
    })
    const [request] = backend.requests('/open')
    expect(request).toMatchObject({ method: 'POST', target: '/open/mcp?a=%7E&b', mount: '/open' })
    expect(request?.body.toString()).toBe('{"not":"mcp"}')
    expect(request?.headers).toContain('Thing')
  })

  test('what is not a mount is not found', async () => {
    expect((await fetch(`${backend.url}/open-but-different/mcp`)).status).toBe(404)
  })
})
