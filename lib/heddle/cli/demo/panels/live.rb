# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      module Panels
        # Requests a second and how long they take, drawn while it happens, and a button that makes many of them.
        class Live < Panel
          # The body of the response that the crowd gets.
          HELLO = "hello\n"
          # How long it asks, in seconds.
          SECONDS = 5
          # The crowds that the page offers, in clients.
          CROWDS = [1, 16, 64, 256].freeze
          # The current values that the page shows, and their labels.
          ROWS = { "connections" => "Connections", "idle" => "of them idle", "running" => "Requests under way",
                   "limit" => "Limit on them", "waiting" => "Waiting for a turn",
                   "answers" => "Answers seen here" }.freeze

          def slug = "live"
          def title = "Requests a second, live"
          def script = "live.js"
          def shown = [method(:hello), Crowd.instance_method(:visit), Pulse.instance_method(:each)]
          def routes = { "/hello" => method(:hello), "/burst" => method(:burst), "/pulse" => method(:pulse) }

          # Answers at once.
          def hello(_env)
            [200, { "content-type" => "text/plain; charset=utf-8" }, [HELLO]]
          end

          # Streams what the server counts for as long as the client listens.
          def pulse(_env)
            Answer.stream("application/x-ndjson", Pulse.new(facts, server))
          end

          # Sends a crowd of as many clients as the query says to /hello and streams what it tells. One at a time, and
          # no other site may send it here.
          def burst(env)
            clients = Parameters.new(env).integer("clients", default: 64, within: 1..256)
            return Answer.text(403, "Only this page may ask for that.\n") if env["HTTP_SEC_FETCH_SITE"] == "cross-site"
            return Answer.text(503, "another crowd is at it, try again in a moment\n") if busy?

            crowd = Burst.new(*own_address, "/hello", clients, SECONDS, stopping: method(:stopping?))
            Answer.stream("application/x-ndjson", alone(crowd))
          end

          def lead
            <<~HTML
              <p>Every request that this server answers, its own pages and streams included. It counts them itself, in
              C: a request’s time begins when its head is complete and ends when its answer is written. Time
              in the kernel’s queue before that is not in it; the crowd tells you that part.</p>
              <p>Send a crowd, and send the fifty requests of a second while it is here: neither holds the other up.</p>
            HTML
          end

          def controls
            choices = CROWDS.map do |clients|
              "<label><input type=\"radio\" name=\"crowd\" value=\"#{clients}\"#{" checked" if clients == 64}>" \
                "<span>#{clients}</span></label>"
            end
            <<~HTML
              <button type="button" class="press" data-run>Send a crowd for #{SECONDS} seconds</button>
              <fieldset class="choice"><legend>Clients, each with a connection of its own</legend>
              <div class="segments">#{choices.join}</div></fieldset>
            HTML
          end

          def stage
            rows = ROWS.map { |name, label| "<div><dt>#{label}</dt><dd data-now=\"#{name}\">–</dd></div>" }
            <<~HTML
              <div class="figures three">
                <p><b data-rate>–</b> <span>requests a second, now</span></p>
                <p class="is"><b data-median>–</b> <span>half of them took less</span></p>
                <p class="is"><b data-p99>–</b> <span>99 of 100 took less</span></p>
              </div>
              <figure>
                <figcaption>Requests a second in the last minute, <span data-most>none seen yet</span></figcaption>
                <canvas class="rate" data-rates role="img" aria-label="Requests a second. None seen yet."></canvas>
              </figure>
              <figure>
                <figcaption>How long they took: the denser, the more of them; the line is the median</figcaption>
                <canvas class="latency" data-latencies role="img" aria-label="How long requests took. None seen yet."></canvas>
                <div class="axis" data-axis aria-hidden="true"></div>
              </figure>
              <dl class="facts six">#{rows.join}</dl>
              <p class="status" role="status" data-status>No crowd sent yet.</p>
            HTML
          end
        end
      end
    end
  end
end
