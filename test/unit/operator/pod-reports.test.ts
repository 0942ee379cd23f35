import { expect, test } from 'vitest'
import { reportIn, reportingPod } from '../../../src/operator/remote-proxy/pod-reports.ts'

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p-1', namespace: 'n', uid: 'u' },
  spec: {
    containers: [
      {
        ports: [
          { name: 'mcp', containerPort: 8080 },
          { name: 'admin', containerPort: 8081 },
        ],
      },
    ],
  },
  status: { podIP: '10.0.0.7', conditions: [{ type: 'Ready', status: 'True' }] },
}
const urlOf = (more: object) => reportingPod({ ...POD, ...more }, 'p').url

test('a pod is asked at its admin port while it is ready, and never in the network of its node', () => {
  expect(urlOf({})).toBe('http://10.0.0.7:8081/readiness')
  expect(urlOf({ status: { ...POD.status, podIP: 'fd00::7' } })).toBe('http://[fd00::7]:8081/readiness')
  expect(urlOf({ status: { ...POD.status, conditions: [{ type: 'Ready', status: 'False' }] } })).toBeUndefined()
  expect(urlOf({ status: { conditions: POD.status.conditions } })).toBeUndefined()
  expect(urlOf({ spec: { ...POD.spec, hostNetwork: true } })).toBeUndefined()
  expect(urlOf({ metadata: { ...POD.metadata, deletionTimestamp: '2026-11-28T00:00:00Z' } })).toBeUndefined()
})

test('a report has the revision and connection failures; nothing long or invalid gets into a status', () => {
  const unreachable = [{ route: 'r', step: 'tls', code: 'CERT_HAS_EXPIRED' }]
  expect(reportIn({ status: 'ready', detail: { revision: 'abc', unreachable } })).toEqual({
    revision: 'abc',
    unreachable: ['tls CERT_HAS_EXPIRED'],
  })
  expect(reportIn({ status: 'ready' })).toEqual({ revision: undefined, unreachable: undefined })
  expect(reportIn({ status: 'ready', detail: { unreachable: [{ step: '<b>', code: 'x'.repeat(100) }] } })).toEqual({
    revision: undefined,
    unreachable: ['? ?'],
  })
  expect(() => reportIn('ready')).toThrow('not a response')
  expect(() => reportIn({})).toThrow('not a response')
})
