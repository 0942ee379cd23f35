import type { Mutation } from './mutation.ts'

const following = ['test/slow/kube/informer-faults.test.ts']
const lease = ['test/unit/kube/lease.test.ts']

/** What the operator does when an API server is in trouble: `kube`. */
export const CLUSTER: readonly Mutation[] = [
  {
    rule: 'a watch that is cut goes on after the last event',
    file: 'src/kube/informer.ts',
    find: '      version = object.metadata.resourceVersion ?? version\n',
    replace: '',
    tests: following,
  },
  {
    rule: 'one event does not end the doubling of pauses',
    file: 'src/kube/informer.ts',
    find: 'const STEADY_MS = 5_000',
    replace: 'const STEADY_MS = 0',
    tests: following,
  },
  {
    rule: 'an answer that is no list does not say that everything is gone',
    file: 'src/kube/answers.ts',
    find: "if (typeof kind === 'string' && !kind.endsWith('List')) throw malformed()",
    replace: '',
    tests: following,
  },
  {
    rule: 'bytes without an event are silence',
    file: 'src/kube/client.ts',
    find: 'const silence = setTimeout(close, silenceMs)',
    replace: 'const silence = setTimeout(() => {}, silenceMs)',
    tests: following,
  },
  {
    rule: 'a Retry-After holds for all requests of its kind',
    file: 'src/kube/hold-off.ts',
    find: 'if (leftMs > 0) throw',
    replace: 'if (leftMs > 1e9) throw',
    tests: ['test/unit/kube/client.test.ts'],
  },
  {
    rule: 'a lease that was lost is not taken back',
    file: 'src/kube/lease.ts',
    find: '    // Lost is lost: what is under way must not take it again.\n    stop.abort()\n',
    replace: '',
    tests: lease,
  },
  {
    rule: 'one silent connection does not cost the lease',
    file: 'src/kube/lease.ts',
    find: 'const REQUEST_SHARE = 0.4',
    replace: 'const REQUEST_SHARE = 1',
    tests: lease,
  },
]
