# syntax=docker/dockerfile:1
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY scripts/build.ts scripts/
COPY bin/built.cjs bin/built.cjs
COPY src src
COPY lab lab
RUN node scripts/build.ts && npm prune --omit=dev --omit=optional --ignore-scripts

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="mcp-extauth" \
  org.opencontainers.image.description="Authentication proxy for MCP servers" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY bin bin
COPY config config
COPY package.json LICENSE ./
# What Node compiles at a first start is kept for all others: a start that ends by itself, and what it left under the number
# of the user below, who may read it and not change it.
RUN timeout --preserve-status 10 node bin/extauth.cjs proxy --config config/lab --listen 127.0.0.1:0 --admin 127.0.0.1:0 >/dev/null \
  && for cache in node_modules/.cache/extauth/*; do mv "$cache" "${cache%-*}-65532"; done \
  && chmod -R a+rX node_modules/.cache
# Nothing is written at run time: `docker run --read-only` works, and so does `readOnlyRootFilesystem: true`.
USER 65532:65532
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["node", "bin/extauth.cjs", "health"]
# Room for young objects: requests cost the same as with what V8 takes by itself, 64 MiB where there is much memory, and the
# process holds a hundred MiB less after a load (docs/adr/0341).
ENTRYPOINT ["node", "--disable-sigusr1", "--max-semi-space-size=8", "bin/extauth.cjs"]
CMD ["proxy", "--config", "/etc/extauth"]
