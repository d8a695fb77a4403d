# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      module Panels
        # One request that blocks, fifty beside it, and a switch for the protections that keep them apart.
        class Block < Panel
          # How a request can block: its name in the query, its name on the page, and the method that does it.
          WAYS = {
            "wait" => ["flock", Blockade.method(:wait)],
            "compute" => ["Ruby", Blockade.method(:compute)],
            "hold" => ["Bignum", Blockade.method(:hold)]
          }.freeze
          # Whether the protections are on.
          SWITCH = { "on" => true, "off" => false }.freeze

          def slug = "block"
          def title = "One request blocks"
          def script = "block.js"
          def shown = [*WAYS.values.map(&:last), Trial.instance_method(:switched)]
          def routes = { "/block" => method(:block), "/trial" => method(:trial) }

          # Blocks in the way that the query says. For the trial that is under way, and once in it.
          def block(env)
            _, blockade = Parameters.new(env).choice("way", WAYS)
            return Answer.text(403, "Only the panel's button may ask for that.\n") unless busy? && !@blocked

            @blocked = true
            blockade.call
            Answer.text(200, "blocked\n")
          end

          # Sends a request that blocks and fifty beside it, and streams what becomes of them. One trial at a time, and
          # no other site may ask for it.
          def trial(env)
            parameters = Parameters.new(env)
            way = parameters.choice("way", WAYS) && parameters.text("way")
            protect = parameters.choice("protect", SWITCH)
            return Answer.text(403, "Only this page may ask for that.\n") if env["HTTP_SEC_FETCH_SITE"] == "cross-site"
            return Answer.text(503, "another block is at it, try again in a moment\n") if busy?

            path = "/block?way=#{way}"
            sent = Burst.new(*own_address, path, of: Bystanders, stopping: method(:stopping?))
            @blocked = false
            Answer.stream("application/x-ndjson", alone(Trial.new(sent, protect:)))
          end

          def lead
            <<~HTML
              <p>A process of its own sends this server a request that blocks its thread and, one after the other, fifty
              that only sleep for 0.2 s. All are served by one thread. Beside a server that does nothing about it, they
              wait until the block is over.</p>
              <p><code>flock</code> waits in the kernel for a locked file, Ruby counts as fast as it can, and the bignum
              is one power in C that keeps Ruby’s lock: nothing inside one process can interrupt that.</p>
            HTML
          end

          def controls
            ways = WAYS.map { |way, (name, _)| radio("way", way, name, way == "wait") }
            switch = SWITCH.keys.map { |word| radio("protect", word, word.capitalize, word == "on") }
            <<~HTML
              <button type="button" class="press" data-run>Block</button>
              <fieldset class="choice"><legend>What blocks</legend><div class="segments">#{ways.join}</div></fieldset>
              <fieldset class="choice"><legend>Offload and preempt, for this run</legend>
              <div class="segments">#{switch.join}</div></fieldset>
            HTML
          end

          def stage
            <<~HTML
              <figure>
                <figcaption>By how much the loop was late in the last minute.
                <span class="standing">It stood still</span><span data-last></span></figcaption>
                <canvas class="lag" data-loop role="img" aria-label="The loop in the last minute. Nothing seen yet."></canvas>
              </figure>
              <div class="figures">
                <p><b data-beside>–</b> <span>of #{Bystanders::REQUESTS} answered while it blocked</span></p>
                <p><b data-slowest>–</b> <span>seconds for the slowest of them</span></p>
              </div>
              <figure>
                <figcaption>Each line is one request, from its start to its answer; the first is the one that blocks.
                <span class="standing">The loop stood still</span></figcaption>
                <div class="timeline" data-timeline data-requests="#{Bystanders::REQUESTS}"></div>
              </figure>
              <p class="status" role="status" data-status>Nothing has blocked yet.</p>
            HTML
          end

          private

          def radio(group, value, name, checked)
            "<label><input type=\"radio\" name=\"#{group}\" value=\"#{value}\"#{" checked" if checked}>" \
              "<span>#{name}</span></label>"
          end
        end
      end
    end
  end
end
