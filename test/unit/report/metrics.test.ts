import { describe, expect, it } from 'vitest'
import { openMetrics } from '../../../src/report/metrics.ts'

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

  it('forgets the series of labels that are no more, in every metric that has them', async () => {
    const metrics = openMetrics({ processMetrics: false })
    const requests = metrics.counter('extauth_requests_total', 'Requests.', ['route', 'type', 'status'])
    for (const route of ['a', 'b']) for (const status of ['200', '404']) requests.with(route, 't', status).add()
    requests.with('a', 'other', '200').add()
    metrics.histogram('extauth_seconds', 'Time.', ['route', 'type'], [1]).with('a', 't').observe(0.5)
    metrics.counter('extauth_types_total', 'Types.', ['type']).with('t').add()
    metrics.removeSeries({ route: 'a', type: 't' })
    const text = await metrics.render()
    expect(text).not.toMatch(/route="a",type="t"/)
    expect(text).toContain('extauth_requests_total{route="b",type="t",status="404"} 1')
    expect(text).toContain('extauth_requests_total{route="a",type="other",status="200"} 1')
    expect(text).toContain('extauth_types_total{type="t"} 1')
    requests.with('a', 't', '200').add()
    expect(await metrics.render()).toContain('extauth_requests_total{route="a",type="t",status="200"} 1')
  })

  it('counts under the first bound that a value does not exceed, and sums', async () => {
    const metrics = openMetrics({ processMetrics: false })
    const seconds = metrics.histogram('extauth_seconds', 'Time.', ['route'], [0.1, 1])
    for (const value of [0.05, 0.1, 0.5, 1, 7]) seconds.with('a').observe(value)
    seconds.with('b').observe(2)
    expect((await metrics.render()).split('\n').filter((line) => line.startsWith('extauth_seconds'))).toEqual([
      'extauth_seconds_bucket{le="0.1",route="a"} 2',
      'extauth_seconds_bucket{le="1",route="a"} 4',
      'extauth_seconds_bucket{le="+Inf",route="a"} 5',
      'extauth_seconds_sum{route="a"} 8.65',
      'extauth_seconds_count{route="a"} 5',
      'extauth_seconds_bucket{le="0.1",route="b"} 0',
      'extauth_seconds_bucket{le="1",route="b"} 0',
      'extauth_seconds_bucket{le="+Inf",route="b"} 1',
      'extauth_seconds_sum{route="b"} 2',
      'extauth_seconds_count{route="b"} 1',
    ])
    expect(await metrics.render()).toContain('# TYPE extauth_seconds histogram')
  })

  it('gives what was counted since it was last read, once', async () => {
    const metrics = openMetrics({ processMetrics: false })
    const requests = metrics.counter('extauth_requests_total', 'Requests.', ['route'])
    const [one, same] = [requests.with('a'), requests.with('a')]
    one.add()
    same.add(2)
    expect(await metrics.render()).toContain('{route="a"} 3')
    expect(await metrics.render()).toContain('{route="a"} 3')
    one.add()
    expect(JSON.stringify(await metrics.snapshot())).toContain('"value":4')
  })

  it('shows 0 for initialized labels, and nothing for uncounted ones', async () => {
    const metrics = openMetrics({ processMetrics: false })
    const requests = metrics.counter('extauth_requests_total', 'Requests.', ['route'])
    requests.with('begins').add(0)
    requests.with('waits')
    expect(await metrics.render()).toContain('extauth_requests_total{route="begins"} 0\n')
    expect(await metrics.render()).not.toContain('waits')
    requests.with('begins').add()
    expect(await metrics.render()).toContain('extauth_requests_total{route="begins"} 1\n')
  })

  it('includes process metrics unless disabled', async () => {
    expect(await openMetrics().render()).toContain('process_cpu_seconds_total')
    expect(await openMetrics({ processMetrics: false }).render()).not.toContain('process_cpu')
  })
})
