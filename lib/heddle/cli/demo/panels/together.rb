# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      module Panels
        # A room and a cloth for all visitors who have the page open: WebSockets, an event stream and a live page.
        class Together < Panel
          def initialize(...)
            super
            @talk = Talk.new
            @weave = Heddle::Live.new(Weave)
          end

          def slug = "together"
          def title = "Everybody at once"
          def script = "together.js"
          def shown = [Talk.instance_method(:on_open), Talk.instance_method(:on_message), method(:events)]
          def routes = { "/together" => method(:talk), "/together/events" => method(:events) }
          def mounts = { "/weave" => @weave }

          # Makes a WebSocket of the request.
          def talk(env)
            Heddle::WebSocket.upgrade(env, @talk)
          end

          # The same messages as server-sent events; a browser that was away gets what it has missed.
          def events(env)
            Heddle::EventStream.response(Talk::TOPIC, since: env["HTTP_LAST_EVENT_ID"])
          end

          def lead
            <<~HTML
              <p>Open this page twice. Your messages go to everybody who has joined, over a WebSocket and as a
              server-sent event: one message, encoded once for each of the two. An open connection of either kind is a
              record in C; it has no fiber and no thread.</p>
              <p>The cloth is a live page: Ruby draws it, and only the threads that have changed are sent.</p>
            HTML
          end

          def controls
            <<~HTML
              <button type="button" class="press" data-run>Join</button>
              <form class="say" data-say hidden>
                <input name="text" maxlength="100" required autocomplete="off" aria-label="Your message">
                <button class="press">Say it</button>
              </form>
            HTML
          end

          def stage
            <<~HTML
              <div class="said">
                <figure><figcaption>By the WebSocket</figcaption><ul data-socket></ul></figure>
                <figure><figcaption>By the event stream</figcaption><ul data-events></ul></figure>
              </div>
              <figure>
                <figcaption>The cloth that everybody weaves</figcaption>
                <iframe class="cloth" data-weave title="A cloth whose threads you can cross"></iframe>
              </figure>
              <p class="status" role="status" data-status>You have not joined.</p>
            HTML
          end
        end
      end
    end
  end
end
