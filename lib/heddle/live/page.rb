# frozen_string_literal: true

require "heddle/live/template"

module Heddle
  class Live
    # The page of one client. Its state is in instance variables, from which a template makes the HTML. After a callback
    # (an event of the client, a message, a timer call or an {#update}), the template is rendered again, and the changed
    # parts are sent to the client. A page runs one callback at a time. If several callbacks are waiting, the template
    # may be rendered only once after them.
    class Page
      # The allowed types of an event's parameters, and how to parse each.
      TYPES = { String => ->(text) { text }, Integer => ->(text) { Integer(text, 10) },
                Float => ->(text) { Float(text).tap { |n| raise ArgumentError unless n.finite? } } }.freeze
      private_constant :TYPES

      class << self
        # Sets the page's template.
        # @param path [String] an ERB file, see {Template}
        # @param text [String] the ERB text, if it is not in a file
        # @return [void]
        def template(path = nil, text: File.read(path, encoding: "UTF-8"))
          @template = Template.new(text, path || caller_locations(1, 1).first.path)
          @template.define_in(self)
        end

        # Allows clients to call a method of the page. The method gets the parameters as keyword arguments.
        #
        #     event :reveal, x: Integer, y: Integer
        #
        # @param name [Symbol]
        # @param types [Hash{Symbol => Class}] parameters: String, Integer or Float
        # @return [void]
        def event(name, **types)
          unknown = types.values - TYPES.keys
          raise ArgumentError, "a parameter must be a String, Integer or Float, but is #{unknown.first}" if unknown.any?

          (@events ||= {})[name.to_s] = types.transform_keys(&:to_s)
        end

        # @return [Template]
        def own_template
          @template || (superclass.own_template if superclass < Page) or
            raise ArgumentError, "#{self} has no template: declare one, such as template \"page.erb\""
        end

        # Checks and parses an event of a client.
        # @param name [Object] the event's name
        # @param values [Object] its parameters
        # @return [Array(Symbol, Hash{Symbol => Object}), nil] method and arguments; nil: the page has no event with
        #   this name, or the values don't fit the event's parameters
        def read_event(name, values)
          types = @events&.[](name)
          return (superclass.read_event(name, values) if superclass <= Page) unless types
          return unless values.is_a?(Hash) && values.keys.sort == types.keys.sort && values.values.all?(String)

          [name.to_sym, values.to_h { |key, text| [key.to_sym, TYPES[types[key]].call(text)] }]
        rescue ArgumentError
          nil
        end
      end

      # @return [String, nil] the user that the block of {Live#initialize} has returned for the request
      attr_reader :user

      # @api private
      # @param session [Session, nil] nil: the page is rendered only once, for the response to a GET request
      def initialize(session, user)
        @live_session = session
        @user = user
      end

      # Override to set up the state. Called for the GET request. Called again when the page's WebSocket has connected:
      # on a new page object, with the same parameters, which the client sends back in a signed token.
      #
      # @param params [Hash{String => String}] the query's parameters
      # @return [void]
      # @raise [NotFoundError] if there is no page for these parameters
      def mount(params) = params

      # Override to clean up. Called when a connected page has ended; not called for the page of the GET request.
      # @return [void]
      def unmount = nil

      # Override to change the HTML document around the page.
      # @param content [String] the page's HTML
      # @param script [String] URL of the client's script, escaped for HTML
      # @return [String] the document's HTML
      def document(content, script)
        <<~HTML
          <!DOCTYPE html>
          <html lang="en">
            <head>
              <meta charset="utf-8"><meta name="viewport" content="width=device-width">
              <title>#{Template.escape(title)}</title>
              #{head}
              <script src="#{script}" defer></script>
            </head>
            <body>#{content}</body>
          </html>
        HTML
      end

      # Override to set the document's title.
      # @return [String]
      def title = self.class.name

      # Override to add to the document's head, for example a style sheet.
      # @return [String] HTML
      def head = ""

      # @return [Boolean] false during the GET request; true for the page object of a WebSocket, even while the client
      #   is briefly disconnected
      def connected? = !@live_session.nil?

      # Calls the block for each later message of a topic, until the page ends. Does nothing during the GET request.
      # @param topic [String, Symbol]
      # @yieldparam message [PubSub::Message]
      # @return [void]
      def subscribe(topic, &block) = @live_session&.subscribe(Arguments.topic(topic), block)

      # Calls the block at an interval of `seconds`, until the page ends. Does nothing during the GET request.
      # @param seconds [Numeric]
      # @return [void]
      def every(seconds, &block) = @live_session&.every(seconds, block)

      # Calls the block soon, when no other callback of the page runs. Does nothing during the GET request. Tasks that
      # the page has started must change the page only in such a block.
      # @return [void]
      def update(&block) = @live_session&.post(block)

      # Marks HTML that the template must not escape.
      # @param html [String]
      # @return [Raw]
      def raw(html) = Raw.new(html.to_s)
    end

    # HTML that templates do not escape.
    class Raw < String
      # @return [true]
      def html_safe? = true
    end

    # Raised by {Page#mount} when there is no page for the given parameters.
    class NotFoundError < OwnError; end
  end
end
