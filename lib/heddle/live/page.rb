# frozen_string_literal: true

require "heddle/live/template"

module Heddle
  class Live
    # The view of one client. Its state is in instance variables; a template reads them and makes the HTML. After each
    # event, message and tick the template is rendered, and the changed parts go to the client. A page runs one callback
    # at a time.
    class Page
      # The allowed types of an event's parameter, and how it is read.
      TYPES = { String => ->(text) { text }, Integer => ->(text) { Integer(text, 10) },
                Float => ->(text) { Float(text).tap { |n| raise ArgumentError unless n.finite? } } }.freeze
      private_constant :TYPES

      class << self
        # @param path [String] an ERB file, see {Template}
        # @param text [String] the ERB itself, if it is not in a file
        # @return [void]
        def template(path = nil, text: File.read(path, encoding: "UTF-8"))
          @template = Template.new(text, path || caller_locations(1, 1).first.path)
          @template.define_in(self)
        end

        # Allows clients to call a method. It gets keyword arguments.
        #
        #     event :reveal, x: Integer, y: Integer
        #
        # @param name [Symbol]
        # @param types [Hash{Symbol => Class}] parameters: String, Integer or Float
        # @return [void]
        def event(name, **types)
          unknown = types.values - TYPES.keys
          raise ArgumentError, "a parameter must be a String, Integer or Float, not #{unknown.first}" if unknown.any?

          (@events ||= {})[name.to_s] = types.transform_keys(&:to_s)
        end

        # @return [Template]
        def own_template
          @template || (superclass.own_template if superclass <= Page) or
            raise ArgumentError, "#{self} has no template; declare one, such as: template \"page.erb\""
        end

        # @param name [Object] of an event, from a client
        # @param values [Object] its parameters
        # @return [Array(Symbol, Hash{Symbol => Object}), nil] nil: the page has no event with this name and such
        #   parameters
        def read_event(name, values)
          types = @events&.[](name)
          return (superclass.read_event(name, values) if superclass <= Page) unless types
          return unless values.is_a?(Hash) && values.keys.sort == types.keys.sort && values.values.all?(String)

          [name.to_sym, values.to_h { |key, text| [key.to_sym, TYPES[types[key]].call(text)] }]
        rescue ArgumentError
          nil
        end
      end

      # @return [String, nil] the owner that the block of {Live#initialize} has returned for the request
      attr_reader :user

      # @api private
      # @param session [Session, nil] nil: the page is rendered once, for the response to a GET
      def initialize(session, user)
        @live_session = session
        @user = user
      end

      # Overridden: sets up the state. Called for the first GET request, and again when the page has connected,
      # with the signed parameters of the GET request.
      #
      # @param params [Hash{String => String}] of the query
      # @return [void]
      # @raise [NotFoundError] there is no such page
      def mount(params) = params

      # Overridden: called when the page has ended.
      # @return [void]
      def unmount = nil

      # Overridden: the HTML document around the page's own.
      # @param content [String] HTML
      # @param script [String] the address of the script, escaped for HTML
      # @return [String] HTML
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

      # Overridden: the document's title.
      # @return [String]
      def title = self.class.name

      # Overridden: more of the document's head, such as a style sheet.
      # @return [String] HTML
      def head = ""

      # @return [Boolean] whether a client is connected
      def connected? = !@live_session.nil?

      # Calls the block for each message of a topic, from now on, while the page is connected.
      # @param topic [String, Symbol]
      # @yieldparam message [PubSub::Message]
      # @return [void]
      def subscribe(topic, &block) = @live_session&.subscribe(topic.to_s, block)

      # Calls the block at an interval of `seconds` while the page is connected.
      # @param seconds [Numeric]
      # @return [void]
      def every(seconds, &block) = @live_session&.every(seconds, block)

      # Calls the block soon, when nothing else runs in the page. Tasks that the page has started change it only in such
      # a block.
      # @return [void]
      def update(&block) = @live_session&.post(block)

      # @param html [String] that is not to be escaped
      # @return [Raw]
      def raw(html) = Raw.new(html.to_s)
    end

    # HTML that is not escaped.
    class Raw < String
      # @return [true]
      def html_safe? = true
    end

    # Raised when there is no page for these parameters.
    class NotFoundError < OwnError; end
  end
end
