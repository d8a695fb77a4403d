# frozen_string_literal: true

module Heddle
  class Live
    # Runs the callbacks of one page, one at a time, and sends the changes to the client. The session outlives a short
    # loss of the connection. The next patch is made only when the client has applied the previous one, so a slow client
    # skips states.
    #
    # @api private
    class Session
      # Maximum number of messages, timer calls and {Page#update} blocks that wait in the page's queue.
      MAX_INBOX = 1_000
      private_constant :MAX_INBOX

      # @return [String] the id by which the client continues the session after a reconnect
      attr_reader :id

      # @param page_class [Class]
      # @param params [Hash{String => Object}]
      # @param user [String, nil]
      # @yield when the session has ended
      def initialize(page_class, params, user, &ended)
        @id = SecureRandom.urlsafe_base64
        @params = params
        @user = user
        @scheduler = Concurrency.scheduler!("a page of Heddle::Live (it needs mode fiber)")
        @turn = Thread::Mutex.new
        @inbox = []
        @topics = []
        @timers = []
        @client = @pieces = @task = @departure = nil
        @awaited = @dirty = @lost = false
        @page = page_class.new(self, user)
        @when_ended = ended
      end

      # Mounts the page.
      # @raise [NotFoundError]
      # @return [void]
      def mount = take_turn { @page.mount(@params) }

      # @param params [Hash{String => Object}]
      # @param user [String, nil]
      # @return [Boolean] whether a client with this user and these parameters may continue the session in this loop
      def fits?(params, user) = @params == params && @user == user && @scheduler.equal?(Fiber.current_scheduler)

      # Called when the client has connected or reconnected. Sends the whole page.
      # @param client [WebSocket::ServerSocket]
      # @return [void]
      def attach(client)
        take_turn do
          next client.close(1001, "the page has ended") unless @page

          @client&.close(1000, "the page was connected again by another socket")
          @departure&.stop
          @client = client
          pieces = @page.render_pieces
          write({ id: @id, statics: @page.class.own_template.statics, pieces: }, pieces)
        end
      end

      # Called when the client has disconnected. Ends the page later, unless the client reconnects.
      # @param client [WebSocket::ServerSocket] the disconnected client
      # @param patience [Numeric] seconds within which the client may reconnect
      # @return [Boolean] whether this was the session's current client
      def detach(client, patience)
        return false unless @page && @client.equal?(client)

        @client = nil
        @departure = context.timers.after(patience, self) { end_page unless @client }
        true
      end

      # Calls a method of the page. Waits until no other callback of the page runs.
      # @param name [Symbol]
      # @param values [Hash{Symbol => Object}]
      # @return [void]
      def call(name, values)
        take_turn do
          @page&.public_send(name, **values)
          flush
        end
      end

      # Called when the client confirms that it has applied the last patch.
      # @return [Boolean] false: no confirmation was expected
      def acknowledge
        return false unless @awaited

        take_turn do
          @awaited = false
          flush if @dirty
        end
        true
      end

      # Queues the block. It is called when no other callback of the page runs.
      # @return [void]
      def post(block, *arguments)
        return unless @page

        # If the page is too slow, it loses the waiting messages and {Page#update} blocks. Later, each of its topics
        # gets a reset.
        if @inbox.size >= MAX_INBOX
          # Keeps the calls of timers: a timer whose call is lost counts as pending, and is never posted again.
          @inbox.select! { |waiting,| waiting.is_a?(Concurrency::Timer) }
          @lost = true
        end
        @inbox << [block, *arguments]
        @task ||= context.root.async(name: "live page", background: true) { drain }
      end

      # Ends the page soon.
      # @return [void]
      def finish = context.timers.after(0, self) { end_page }

      # @see Page#subscribe
      def subscribe(topic, block)
        receiver = ->(message) { post(block, message) }
        PubSub::Readers.of(@scheduler).subscribe(topic, receiver)
        @topics << [topic, receiver, block]
      end

      # @see Page#every
      def every(seconds, block) = @timers << context.timers.every(seconds, self, &block)

      private

      def context = Concurrency::Context.of(@scheduler)

      def take_turn(&)
        @turn.synchronize(&)
      rescue Exception
        end_page # the state of the page is unknown
        raise
      end

      def drain
        take_turn do
          @task = nil # a block that is posted from now on starts a new task
          while (block, *arguments = @inbox.shift)
            block.call(*arguments)
          end
          report_loss if @lost
          flush
        end
      rescue ApplicationFailure => e
        @client&.close(1011, "the page has failed; see the server's log")
        Events.report(:live_page_failed, error: ErrorText.full(e))
      end

      def report_loss
        @lost = false
        @topics.each do |topic, _, block|
          block.call(PubSub::Message.new(topic:, data: nil, position: PubSub.position(topic)))
        end
      end

      def end_page
        page = @page or return
        @page = nil
        @topics.each { |topic, receiver,| PubSub::Readers.of(@scheduler).unsubscribe(topic, receiver) }
        [*@timers, @departure].each { |timer| timer&.stop }
        @inbox.clear
        @when_ended.call(self)
        page.unmount
      end

      def flush
        return if @client.nil? || @page.nil?
        return @dirty = true if @awaited

        pieces = @page.render_pieces
        patch = Patch.between(@pieces, pieces)
        write(patch, pieces) if patch
      end

      # @param message [Hash, Array] the message to send
      # @param pieces [Array<Array>] the pieces that the client has after this message
      def write(message, pieces)
        @pieces = pieces
        @awaited = true
        @dirty = false
        @client.write(JSON.generate(message))
      end
    end
  end
end
