import { afterEach, expect, it } from 'vitest'
import { buildCandidate, createServices, loadModules } from '../../../../src/compose/proxy/index.ts'
import { ROUTES_PER_TURN } from '../../../../src/compose/proxy/configuration.ts'
import { resolveProxy, type ResolvedProxy } from '../../../../src/load/index.ts'
import { externalAuth, load, proxy, route, SPECS } from '../../../support/load/documents/build.ts'
import { recordLog } from '../../../support/e2e/lab.ts'

const services = createServices({
  secretsDirectory: '/nowhere',
  maxCredentials: 100,
  env: {},
  log: recordLog(),
  clock: { now: () => 0 },
})
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})

function configOf(count: number): ResolvedProxy {
  const routes = Array.from({ length: count }, (_, index) => route({ name: `r-${index}`, path: `/${index}` }))
  const { config } = resolveProxy(
    load(externalAuth(SPECS.unauthenticated), proxy({ auth: { mode: 'anonymous' }, routes })),
  )
  if (config === undefined) throw new Error('the configuration is not what this test takes it for')
  return config
}

it('gives way to requests while it builds thousands of routes', async () => {
  const config = configOf(12 * ROUTES_PER_TURN + 1)
  let turns = 0
  const candidate = await buildCandidate(config, 'http://127.0.0.1:1', services, await loadModules(config), () => {
    turns++
    return Promise.resolve()
  })
  closing.push(() => candidate.runtime.close())
  expect(candidate.runtime.routes).toHaveLength(config.routes.length)
  expect(turns).toBe(12)
})

it('makes no timer for a route', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const config = configOf(500)
  const modules = await loadModules(config)
  const one = await buildCandidate(configOf(1), 'http://127.0.0.1:1', services, modules)
  closing.push(() => one.runtime.close())
  const before = timers()
  const many = await buildCandidate(config, 'http://127.0.0.1:1', services, modules)
  closing.push(() => many.runtime.close())
  expect(timers() - before).toBeLessThan(10)
})
