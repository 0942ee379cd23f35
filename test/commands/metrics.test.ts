import { describe, expect, it } from 'vitest'
import { openMetrics } from '../../src/commands/metrics.ts'

describe('metrics', () => {
  it('counts, measures and sets by label, and renders Prometheus text', async () => {
    const metrics = openMetrics({ processMetrics: false })
    metrics.counter('extauth_requests_total', 'Requests.', ['route']).with('github').add()
    metrics.counter('extauth_requests_total', 'Requests.', ['route']).with('github').add(2)
    metrics.gauge('extauth_active_streams', 'Streams.').with().set(4)
    metrics.gauge('extauth_active_streams', 'Streams.').with().add(-1)
    metrics.histogram('extauth_seconds', 'Time.', ['route'], [0.1, 1]).with('github').observe(0.5)
    const text = await metrics.render()
    expect(text).toContain('extauth_requests_total{route="github"} 3')
    expect(text).toContain('extauth_active_streams 3')
    expect(text).toContain('extauth_seconds_bucket{le="0.1",route="github"} 0')
    expect(text).toContain('extauth_seconds_bucket{le="1",route="github"} 1')
  })

  it('has the process in it unless it is told not to', async () => {
    expect(await openMetrics().render()).toContain('process_cpu_seconds_total')
    expect(await openMetrics({ processMetrics: false }).render()).not.toContain('process_cpu')
  })
})
