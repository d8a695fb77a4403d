# frozen_string_literal: true

require "heddle/live"

module Heddle
  module CLI
    class Demo
      # A live page: a cloth that all visitors weave. A press lifts a thread over the others, or puts it under them.
      class Weave < Heddle::Live::Page
        WIDTH = 16
        HEIGHT = 8
        TOPIC = "demo weave"
        OVER = Set.new # places; heddle demo has one process
        private_constant :OVER

        template text: <<~ERB
          <div id="cloth">
            <% (WIDTH * HEIGHT).times do |place| %>
              <button data-live-click="cross" data-live-place="<%= place %>" class="<%= side(place) %>"
                aria-label="Thread <%= place + 1 %>"></button>
            <% end %>
          </div>
        ERB
        event :cross, place: Integer

        def mount(_params)
          subscribe(TOPIC) { nil } # whichever visitor has pressed, it is drawn anew
        end

        def cross(place:)
          return unless (0...(WIDTH * HEIGHT)).cover?(place)

          OVER.add?(place) || OVER.delete(place)
          Heddle::PubSub.publish(TOPIC, place.to_s)
        end

        def title = "Weave"

        def head
          <<~HTML
            <style>
              body { margin: 0; background: transparent; }
              #cloth { display: grid; grid-template-columns: repeat(#{WIDTH}, 1fr); gap: 2px; }
              button { border: 0; padding: 0; aspect-ratio: 1; border-radius: 20%; background: #d9cfbd; cursor: pointer; }
              .over { background: #b3382c; }
              button:focus-visible { outline: 2px solid #31478a; }
            </style>
          HTML
        end

        private

        def side(place) = OVER.include?(place) ? "over" : "under"
      end
    end
  end
end
