interface App {
  register(plugin: unknown, options: object): unknown
  listen(options: object): Promise<string>
}

// Not literals, so that the types are not needed where only the sources are checked.
const names: readonly string[] = ['fastify', '@fastify/http-proxy']
const [fastify, proxy] = (await Promise.all(names.map((name) => import(name)))) as [
  { default: () => App },
  { default: unknown },
]
const app = fastify.default()
await app.register(proxy.default, {
  upstream: process.argv[2],
  undici: { connections: 4096, pipelining: 1, bodyTimeout: 0, headersTimeout: 0 },
  proxyPayloads: true,
})
process.send?.(await app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }))
process.on('disconnect', () => process.exit())
