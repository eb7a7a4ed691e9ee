# The server alone; compose.yaml puts a PostgreSQL beside it. Built as make build
# does, so that the same revision gives the same bytes here too:
#
#   docker build --build-arg REVISION=$(git rev-parse HEAD) .
FROM golang:1.26.8 AS build
ARG REVISION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download && go mod verify
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-X github.com/inletdev/inlet/impl.source=$REVISION" -o /inlet ./cmd/inlet

# No shell, no packages, no root.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /inlet /inlet
USER 65532:65532
ENV INLET_LISTEN=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/inlet"]
CMD ["serve"]
