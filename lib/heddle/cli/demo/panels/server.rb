# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      module Panels
        # The server's facts, as the pulse sends them.
        class Server < Panel
          # Name in the answer => name on the page.
          ROWS = {
            "heddle" => "Heddle", "ruby" => "Ruby", "selector" => "Selector", "fibers" => "Fibers alive",
            "threads" => "Ruby threads", "memory" => "Memory", "pid" => "Process", "uptime" => "Up for",
            "protocol" => "This page came by"
          }.freeze

          def slug = "server"
          def title = "This server"
          def script = "server.js"
          def shown = [Facts.instance_method(:to_h)]
          def routes = { "/facts" => method(:tell) }

          # Answers with the facts as they are now.
          def tell(_env)
            Answer.json(facts.to_h)
          end

          def lead
            <<~HTML
              <p>Told four times a second while you look at this page, over one answer that is still being written. One
              of the fibers writes it. While the fifty requests are under way there are a hundred more: fifty that ask
              and fifty that answer. Alone, the facts are at <a href="/facts">/facts</a>.</p>
            HTML
          end

          def stage
            rows = ROWS.map do |name, label|
              "<div><dt>#{label}</dt><dd data-fact=\"#{name}\">–</dd></div>"
            end
            <<~HTML
              <dl class="facts">#{rows.join}</dl>
              <figure>
                <figcaption>Fibers alive in the last minute, <span data-most>none seen yet</span></figcaption>
                <div class="spark" data-spark></div>
              </figure>
              <p class="status" data-status>No data yet.</p>
            HTML
          end
        end
      end
    end
  end
end
