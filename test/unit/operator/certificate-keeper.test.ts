import { expect, test, vi } from 'vitest'
import { type KubeClient, KubeError, type KubeObject, type Timers } from '../../../src/kube/index.ts'
import { keepCertificate } from '../../../src/operator/webhook/certificate-keeper.ts'
import { createRecordingLog, createRecordingMetrics } from '../../support/ports.ts'

test('an API server that fails at the start is asked again within seconds, then every half minute', async () => {
  const answers = [new KubeError(503, ''), new KubeError(0, 'timeout'), new KubeError(404, 'NotFound')]
  const written: KubeObject[] = []
  const client: Pick<KubeClient, 'get' | 'create'> = {
    get: () => Promise.reject(answers.shift() ?? new KubeError(404, 'NotFound')),
    create: (_type, object) => {
      written.push(object)
      return Promise.resolve(object)
    },
  }
  const pauses: number[] = []
  let next = (): void => {}
  const timers: Timers = {
    now: () => 0,
    after(ms, callback) {
      pauses.push(ms)
      next = callback
      return () => {}
    },
  }
  const onCertificate = vi.fn<() => void>()
  const keeper = await keepCertificate({
    client: client as KubeClient,
    namespace: 'n',
    secretName: 's',
    configurationName: 'c',
    names: ['extauth-operator.n.svc'],
    isLeader: () => true,
    onCertificate,
    clock: { now: () => Date.now() },
    log: createRecordingLog(),
    metrics: createRecordingMetrics(),
    timers,
  })
  expect(keeper.isValid).toBe(false)
  for (const count of [2, 3]) {
    next()
    await vi.waitFor(() => expect(pauses).toHaveLength(count))
  }
  expect(pauses).toEqual([1_000, 2_000, 30_000])
  expect(onCertificate).toHaveBeenCalledOnce()
  expect(written).toHaveLength(1)
  keeper.close()
})
