# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      module Panels
        # A song that is streamed a line at a time.
        class Bottles < Panel
          # How many bottles the song begins with.
          BOTTLES = 99
          # The speeds that the page offers, in seconds a line.
          PAUSES = { "1 s" => 1, "0.25 s" => 0.25, "0.05 s" => 0.05 }.freeze

          def slug = "bottles"
          def title = "#{BOTTLES} bottles, a line at a time"
          def script = "bottles.js"
          def shown = [Song.instance_method(:each)]
          def routes = { "/bottles" => method(:sing) }

          # Streams the song from as many bottles as the query says, at the pause it says.
          def sing(env)
            parameters = Parameters.new(env)
            Answer.stream("text/plain; charset=utf-8",
                          Song.new(bottles: parameters.integer("from", default: BOTTLES, within: 1..BOTTLES),
                                   pause: parameters.float("pause", default: 1.0, within: 0.0..2.0),
                                   stopping: method(:stopping?)))
          end

          def lead
            <<~HTML
              <p>One answer, still being written while you read it. The body of the answer yields a line, sleeps, and
              yields the next; each is sent at once. Meanwhile its fiber blocks no other: try the fifty requests while
              the song goes on.</p>
            HTML
          end

          def controls
            choices = PAUSES.map do |name, seconds|
              "<label><input type=\"radio\" name=\"pause\" value=\"#{seconds}\"#{" checked" if seconds == 1}>" \
                "<span>#{name}</span></label>"
            end
            <<~HTML
              <button type="button" class="press" data-run>Start the song</button>
              <fieldset class="choice"><legend>Pause between lines</legend>
              <div class="segments">#{choices.join}</div></fieldset>
            HTML
          end

          def stage
            <<~HTML
              <figure>
                <figcaption>The wall</figcaption>
                <div class="wall" data-wall data-bottles="#{BOTTLES}"></div>
              </figure>
              <figure>
                <figcaption>A knot for each line, where it arrived</figcaption>
                <div class="cord" data-cord></div>
              </figure>
              <figure>
                <figcaption>Lines as they came, the newest first</figcaption>
                <div class="arrivals" tabindex="0" role="region" aria-label="Lines of the song, the newest first">
                  <table>
                    <thead><tr><th scope="col">Arrived</th><th scope="col">After</th><th scope="col">Line</th></tr></thead>
                    <tbody data-lines><tr><td>–</td><td>–</td><td>The song has not begun.</td></tr></tbody>
                  </table>
                </div>
              </figure>
              <p class="status" role="status" data-status>Nothing streamed yet.</p>
            HTML
          end
        end
      end
    end
  end
end
