# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      module Panels
        # Fifty requests that sleep, all at once, and their timeline.
        class Fifty < Panel
          # How many requests a press of the button makes.
          REQUESTS = 50
          # How long each of them sleeps, in seconds.
          SECONDS = 1
          # The pools that the page can compare with, in threads.
          POOLS = [3, 5, 16].freeze

          def slug = "fifty"
          def title = "Fifty slow requests at once"
          def script = "fifty.js"
          def shown = [method(:sleeper), FanOut.instance_method(:each), FanOut.instance_method(:request)]
          def routes = { "/sleep" => method(:sleeper), "/fifty" => method(:fan_out) }

          # Answers after as many seconds as the query says.
          def sleeper(env)
            seconds = Parameters.new(env).float("seconds", default: 1.0, within: 0.0..10.0)
            sleep seconds
            Answer.text(200, "slept #{seconds} s\n")
          end

          # Makes the fifty requests, to this same server, and streams what becomes of them.
          def fan_out(_env)
            host, port = own_address
            Answer.stream("application/x-ndjson",
                          FanOut.new(host:, port:, paths: ["/sleep?seconds=#{SECONDS}"] * REQUESTS))
          end

          def lead
            <<~HTML
              <p>Each asks this server for <code>/sleep?seconds=#{SECONDS}</code>, which calls Ruby’s own
              <code>sleep</code>. A browser opens only six connections to a host, so the server sends them to itself,
              over fifty sockets.</p>
            HTML
          end

          def controls
            choices = POOLS.map do |threads|
              "<label><input type=\"radio\" name=\"pool\" value=\"#{threads}\"#{" checked" if threads == 5}>" \
                "<span>#{threads}</span></label>"
            end
            <<~HTML
              <button type="button" class="press" data-run>Send fifty requests</button>
              <fieldset class="choice"><legend>Compare with a pool of threads</legend>
              <div class="segments">#{choices.join}</div></fieldset>
            HTML
          end

          def stage
            <<~HTML
              <div class="figures">
                <p><b data-measured>–</b> <span>seconds for all fifty, measured</span></p>
                <p class="computed"><b data-computed>–</b> <span>seconds with <span data-threads>5</span> threads,
                computed, not measured</span></p>
              </div>
              <figure>
                <figcaption>Each line is one request, from its start to its answer</figcaption>
                <div class="timeline" data-timeline data-rows="#{REQUESTS}" data-seconds="#{SECONDS}"></div>
              </figure>
              <figure>
                <figcaption>Both on one scale</figcaption>
                <div class="scales" data-scales></div>
              </figure>
              <p class="status" role="status" data-status>Nothing sent yet.</p>
            HTML
          end
        end
      end
    end
  end
end
