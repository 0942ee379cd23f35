# syntax=docker/dockerfile:1
FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY scripts/build.ts scripts/
COPY bin/built.cjs bin/built.cjs
COPY src src
COPY lab lab
RUN node scripts/build.ts ../app/dist && rm ../app/dist/sources.json
WORKDIR /app
COPY bin bin
COPY config config
COPY package.json LICENSE ./
# The compile cache of a first start, under the number of the user below, who can read it and not change it.
RUN timeout --preserve-status 10 node bin/extauth.cjs proxy --config config/lab --listen 127.0.0.1:0 --admin 127.0.0.1:0 >/dev/null \
  && for cache in node_modules/.cache/extauth/*; do mv "$cache" "${cache%-*}-65532"; done \
  && chmod -R a+rX,go-w .

# glibc, libstdc++ and CA certificates; no shell, no package manager, user 65532.
FROM gcr.io/distroless/cc-debian12
LABEL org.opencontainers.image.title="mcp-extauth" \
  org.opencontainers.image.description="Authentication proxy for MCP servers" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app /app
# Nothing is written at run time: `docker run --read-only` works, and so does `readOnlyRootFilesystem: true`.
USER 65532:65532
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["/usr/local/bin/node", "bin/extauth.cjs", "health"]
# Limits the young generation of the heap (docs/adr/0341).
ENTRYPOINT ["/usr/local/bin/node", "--disable-sigusr1", "--max-semi-space-size=8", "bin/extauth.cjs"]
CMD ["proxy", "--config", "/etc/extauth"]
