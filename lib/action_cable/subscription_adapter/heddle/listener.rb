# frozen_string_literal: true

module ActionCable
  module SubscriptionAdapter
    class Heddle
      # The subscribers of a process. One thread with its own loop receives their messages, so this works under any
      # server.
      class Listener < SubscriberMap
        # @return [Integer] the ID of the process that has made this listener
        attr_reader :pid

        # @param event_loop [#post] runs the `success_callback` of each subscription
        # @param logger [Logger]
        def initialize(event_loop, logger)
          super()
          @event_loop = event_loop
          @logger = logger
          @pid = Process.pid
          @commands = Thread::Queue.new
          @thread = Thread.new { ::Heddle.run { run_commands } }
          @thread.name = "heddle cable"
        end

        # @return [void]
        def shutdown
          @commands.close
          @thread.join
        end

        # @api private
        def add_channel(channel, on_success) = @commands << [:listen, channel, on_success]

        # @api private
        def remove_channel(channel) = @commands << [:leave, channel]

        # The other subscribers get the message even if one fails.
        # @api private
        def invoke_callback(callback, message)
          super
        rescue ::Heddle::ApplicationFailure => e # includes NotImplementedError, unlike StandardError
          log_failure("a subscriber of Action Cable failed", e)
        end

        private

        # Runs the queued commands, in the loop, until the queue is closed.
        def run_commands
          tasks = {}
          while (command = @commands.pop)
            run_command(tasks, *command)
          end
          tasks.each_value(&:cancel)
        end

        # A client may choose a channel's name. If it is too long, the other channels must continue.
        def run_command(tasks, what, channel, on_success = nil)
          what == :listen ? tasks[channel] = listen(channel) : tasks.delete(channel)&.cancel
          @event_loop.post(&on_success) if on_success
        rescue ::Heddle::ApplicationFailure => e
          name = channel.byteslice(0, 100).scrub.inspect
          log_failure("the channel #{name} can't be #{what == :listen ? "subscribed" : "unsubscribed"}", e)
        end

        def log_failure(what, error)
          @logger.error("#{what}: #{::Heddle::ErrorText.message(error)} (#{::Heddle::ErrorText.class_name(error)})")
        end

        def listen(channel)
          ::Heddle::PubSub.subscribe(channel) do |message|
            if message.reset?
              next @logger.warn("broadcasts of #{channel} were lost: too many came at once, or the pub/sub backend " \
                                "lost them")
            end

            broadcast(channel, message.data.dup.force_encoding(Encoding::UTF_8))
          end
        end
      end
    end
  end
end
