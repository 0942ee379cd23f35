import { within } from '../mutation.ts'

/** Guards of `src/workers`. */
export default [
  ...within(
    'src/workers/connection-dispatcher.ts',
    ['test/slow/e2e/workers-hung.test.ts'],
    [
      [
        'a connection that a worker did not take goes to another one',
        'if (socket !== undefined) waitAgain(socket)',
        'socket?.destroy()',
      ],
      [
        'connections wait while there is no worker',
        'waiting.push(socket)',
        'if (free.size > 0) waiting.push(socket)',
        ['test/slow/e2e/workers-gone.test.ts'],
      ],
    ],
  ),
]
