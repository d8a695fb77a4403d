# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The process that serves: a {Server} on sockets that are open already, with a channel to the master.
      class Worker
        # The resources that the master gives to all workers.
        #
        # @!attribute configuration [Configuration]
        # @!attribute log [Log]
        # @!attribute commons [Commons]
        # @!attribute control [String, nil] the folder where each answers an operator for itself
        Setting = Data.define(:configuration, :log, :commons, :control)

        # Connections that are accepted between two ticks of the loop.
        SHARE = 16
        # Seconds.
        PAUSE = 0.01
        # Seconds between two looks at what the scoreboard does not get by itself.
        NOTES = 1
        private_constant :SHARE, :PAUSE, :NOTES

        # @return [Integer] counted from 0; the one that replaces it has the same
        attr_reader :index
        # @return [Server]
        attr_reader :server

        # @param setting [Setting]
        # @param index [Integer]
        # @param slot [Integer] of the scoreboard
        # @param channel [MessageSocket] to the master
        # @param reserve [Integer] its rank among the reserve workers; 0: it is none
        def initialize(setting, index:, slot:, channel:, reserve: 0)
          @setting = setting
          @index = index
          @slot = slot
          @reserve = reserve
          @channel = channel
          @mold_channel = nil
          @answers = {}
          @words = Thread::Queue.new
        end

        # Something the master may ask, see {WorkerHandle#ask}. Answered in a thread beside the loop, so that it is
        # answered while something holds up the loop.
        # @param what [String]
        # @yieldparam arguments [Object] as JSON has it
        # @yieldreturn [Object] for JSON
        # @return [void]
        def on(what, &block) = @answers[what] = block

        # Never returns.
        # @param app [#call]
        def run(app)
          Process.setproctitle("heddle: #{"reserve " if @reserve.positive?}worker #{index}")
          %w[INT HUP].each { |name| OwnTrap.set(name) {} } # rubocop:disable Lint/EmptyBlock
          OwnTrap.set("TERM") { @channel.send_message("asks_to_end") }
          Pool.sharing = Net::PoolShares.new(commons.scoreboard, @slot)
          hooks.run(:worker_boot, index)
          exit(serve(app))
        rescue SystemExit
          raise
        rescue Exception => e
          @setting.log.errors.write("#{failure(e)}\n")
          exit(1)
        end

        private

        def serve(app)
          @server = new_server
          on("served") { Served.list(@server.served) }
          listen
          control = Control::Cluster.of_worker(@setting.control, @server, @setting.log) if @setting.control
          control&.start
          answered = run_server(app, control)
          hooks.run(:worker_stop, index)
          fork_mold(app) if @mold_channel && answered
          answered
        end

        def run_server(app, control)
          @server.run(app) { begin_to_serve }
        ensure
          control&.stop
        end

        # This process has no loop any more, nor a connection. Its copy has no thread besides, and forks workers whose
        # application has served requests.
        def fork_mold(app)
          fork do
            @channel.close
            Mold.new(@setting, @mold_channel).run_warm(app)
          end
        rescue SystemCallError => e
          @setting.log.notice("#{e.message}: no mold could be forked")
        ensure
          @mold_channel.close
        end

        def new_server
          @listeners = Listeners.new(commons.listeners, shared: true)
          Server.new(@setting.configuration,
                     log: @setting.log, listeners: @listeners,
                     place: [commons.scoreboard, @slot], siblings: [commons.giving, commons.taking], reserve: @reserve,
                     unprotected: index < @setting.configuration.unprotected_workers)
        end

        # In the loop.
        def begin_to_serve
          Heddle.async(name: "master", background: true) { follow }
          Heddle.async(name: "handoff", background: true) { accept_handoff }
          Heddle.async(name: "scoreboard", background: true) { note }
          @server.start_out_of_band_gc { @channel.send_message("asks_to_collect") }
          @channel.send_message("ready", **Cluster.facts(@server))
        end

        # Commands are the loop's to obey, and a ping is there to see whether it turns.
        def listen
          thread = Thread.new do
            while (message = @channel.wait)
              hear(message)
            end
          ensure
            @words.close
          end
          thread.name = "master"
          thread.report_on_exception = false
        end

        def hear(message)
          case message.what
          when "ask" then answer(**message.values.transform_keys(&:to_sym))
          when "become_mold" then prepare_mold(message.io)
          else @words << message.what
          end
        end

        # Later: it serves until the master says that it is to leave.
        def prepare_mold(io)
          @listeners.keep_open
          @mold_channel = MessageSocket.new(io)
        end

        def answer(id:, what:, arguments:)
          @channel.send_message("answer", id:, value: @answers[what]&.call(arguments))
        rescue StandardError => e
          @setting.log.notice("the master's question #{what} can't be answered: #{e.class}: #{e.message}")
        end

        def follow
          while (word = @words.pop)
            heed(word)
          end
          # The master is gone, and no worker would be replaced: serve the queue, then end.
          @server.stop
        end

        def heed(word)
          case word
          when "ping" then @channel.send_message("pong")
          when "collect" then collect
          when "leave" then leave
          when "stop" then @server.stop
          when "now" then @server.stop(now: true)
          end
        end

        def collect
          @server.out_of_band_gc&.collect
          @channel.send_message("collected")
        end

        # Other loops of this process stop accepting in their own time.
        def leave
          @server.stop(giving: commons.giving)
          sleep(PAUSE) while @server.statistics&.fetch(:accepting)
          @channel.send_message("accepts_no_more")
        end

        def accept_handoff
          until @server.stopping?
            commons.taking.wait_readable
            taken = 0
            taken += 1 while taken < SHARE && !@server.stopping? && (last = @server.accept_handoff(commons.taking))
            # false: one is waiting that this worker can't have now.
            sleep(last == false ? PAUSE : 0)
          end
        end

        def note
          loop do
            sleep(NOTES)
            statistics = @server.statistics or next
            commons.scoreboard.note(@slot, statistics[:lag], statistics[:waiting], statistics[:limit])
          end
        end

        def commons = @setting.commons

        def hooks = @setting.configuration.hooks

        # A BootError says what to do; where it was raised says nothing.
        def failure(error)
          reasons = [error, *error.cause].map { |one| explain(one) || "#{one.class}: #{one}" }
          places = explain(error) ? [] : places_of(error).first(20)
          ["#{Time.now.strftime("%H:%M:%S")} worker #{index} failed: #{reasons.join(", caused by ")}",
           *places.map { |line| "    from #{line}" }].join("\n")
        end

        # Those of the application and its configuration, without our own where there are others.
        def places_of(error)
          all = error.backtrace || []
          others = all.reject { |line| line.start_with?(AppLoader::OWN) || line.include?("/exe/heddle:") }
          others.empty? ? all : others
        end

        def explain(error) = error.is_a?(BootError) ? error.message : ProcessLimit.explain(error)
      end
    end
  end
end
