# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # The settings that an application needs for gems that Heddle was tested with. Tested gems that are not in this
      # table need no settings. `test/trials/matrix/run --write` writes the settings into the table of docs/gems.md,
      # beside the results.
      module GemSettings
        # Gems that build on the gem async.
        ASYNC = %w[async async-http async-redis async-websocket async-job async-cable live].to_h do |name|
          [name, "`require \"heddle/async\"` in programs of your own; the server does it"]
        end
        ALL = {
          **ASYNC,
          "activerecord" =>
            "the pool of a worker needs a connection for each request that may query at the same time; see " \
            "[Rails](rails.md)",
          "sequel" =>
            "`Sequel.extension :fiber_concurrency` before the first query, and with SQLite " \
            "`busy_handler_timeout`, in programs of your own; the server does both",
          "sqlite3" =>
            "`busy_handler_timeout`, as Rails sets it, and not `busy_timeout`, which holds Ruby's lock while it " \
            "waits; keep queries short",
          "redis" => "one object runs one command at a time: use a pool for many tasks",
          "hiredis-client" =>
            "don't use it for blocking commands, such as BLPOP: only the Ruby driver lets the loop run meanwhile",
          "dalli" => "one client runs one command at a time: use a pool for many tasks",
          "mongo" => "`max_pool_size` at least the number of tasks that query at once",
          "mongoid" => "`isolation_level: :fiber`, which needs Mongoid 9.1",
          "connection_pool" => "a nested check-out in one task gets the same object; `Heddle::Pool` is an alternative",
          "sidekiq" => "use its client in the server; run its workers as separate processes",
          "solid_queue" => "workers with `fibers:` need the gem async, whose reactor they run in a thread",
          "graphql" =>
            "`use GraphQL::Dataloader::AsyncDataloader`; `GraphQL::Dataloader, nonblocking: true`, which graphql " \
            "deprecates, runs a loop of its own and raises ThreadError",
          "rdkafka" => "use `Heddle.offload { consumer.poll(100) }`: otherwise a waiting consumer blocks the loop",
          "karafka" => "run `karafka server` as a separate process",
          "grpc" => "use `Heddle.offload { stub.call(request) }`: otherwise a call blocks the loop",
          "nokogiri" => "parsing holds Ruby's lock: large documents show up in stall reports",
          "mini_racer" => "a context runs one task at a time; callbacks that wait block the loop",
          "wasmtime" => "host functions that wait block the loop",
          "argon2" => "hashing holds Ruby's lock under any server: keep `t_cost` and `m_cost` low",
          "ruby_llm" => "set the option `cancel_on_disconnect`, so that a stream ends when its user has left",
          "openai" => "set the option `cancel_on_disconnect`, so that a stream ends when its user has left",
          "anthropic" =>
            "set the option `cancel_on_disconnect`, so that a stream ends when its user has left; a client has at " \
            "most 99 connections",
          "httpx" => "for a persistent session that several tasks share: `with(resolver_class: :system)`",
          "faraday" => "use the adapter `:heddle`, which raises for a response that is cut off",
          "net-http-persistent" => "`pool_size` at least the number of concurrent requests",
          "typhoeus" => "use `Heddle.offload { Typhoeus.get(url) }`: otherwise a request blocks the loop"
        }.freeze
        private_constant :ASYNC
      end
    end
  end
end
