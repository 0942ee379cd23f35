import { afterEach, describe, expect, it } from 'vitest'
import { createBackends } from '../../../../src/compose/proxy/configuration.ts'
import { type Backend, type BackendOptions, ConnectionBudget } from '../../../../src/net/index.ts'

const opened: Backend[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((backend) => backend.close()))
})
const create = () => createBackends((backend) => (opened.push(backend), backend), new ConnectionBudget(100))
const OPTIONS: BackendOptions = {
  origin: 'https://mcp.example.com',
  timeouts: { connect: 5000, firstByte: 60_000, idle: 0 },
  http2: false,
}

describe('the backends of a configuration', () => {
  it('routes to one origin share its connections, and closing them twice is closing them once', async () => {
    const { open } = create()
    const first = open(OPTIONS)
    for (let route = 0; route < 10_000; route++) expect(open({ ...OPTIONS, targetTls: undefined })).toBe(first)
    expect(opened).toHaveLength(1)
    await Promise.all([first.close(), first.close()])
  })

  it.each<[string, Partial<BackendOptions>]>([
    ['origin', { origin: 'https://mcp.example.com:8443' }],
    ['scheme', { origin: 'http://mcp.example.com' }],
    ['name in TLS', { targetTls: { serverName: 'other.example.com' } }],
    ['trust in any certificate', { targetTls: { insecureSkipVerify: true } }],
    ['protocol', { http2: true }],
    ['way out', { egressProxy: { httpsProxy: 'http://proxy.example.com:3128' } }],
    ['timeout', { timeouts: { connect: 5000, firstByte: 1000, idle: 0 } }],
  ])('another %s has connections of its own', (_what, options) => {
    const { open } = create()
    const one = open(OPTIONS)
    expect(open({ ...OPTIONS, ...options })).not.toBe(one)
    expect(open({ ...OPTIONS })).toBe(one)
  })
})
