# The server alone; compose.yaml puts a PostgreSQL beside it.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /inlet ./cmd/inlet

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /inlet /inlet
ENV INLET_LISTEN=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/inlet"]
CMD ["serve"]
