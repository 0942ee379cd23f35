/** Environment of a process that lets its memory be collected by `collectGarbage(port)`. */
export const inspectable = (port: number): NodeJS.ProcessEnv => ({
  ...process.env,
  NODE_OPTIONS: `--inspect=127.0.0.1:${port}`,
})

/** Has a process collect its garbage, so that what it still holds is what it needs. */
export const collectGarbage = async (port: number): Promise<void> => {
  const answer = await fetch(`http://127.0.0.1:${port}/json/list`)
  const [target] = (await answer.json()) as { webSocketDebuggerUrl: string }[]
  if (target === undefined) throw new Error('nothing to inspect')
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  await new Promise((resolve, reject) => {
    socket.addEventListener('error', () => reject(new Error('the inspector does not answer')))
    socket.addEventListener('open', () => {
      socket.send(JSON.stringify({ id: 1, method: 'HeapProfiler.enable' }))
      socket.send(JSON.stringify({ id: 2, method: 'HeapProfiler.collectGarbage' }))
    })
    socket.addEventListener('message', ({ data }) => {
      if (String(data).startsWith('{"id":2,')) resolve(undefined)
    })
  })
  socket.close()
}
