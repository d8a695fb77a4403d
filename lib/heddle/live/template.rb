# frozen_string_literal: true

require "erb"

module Heddle
  class Live
    # An ERB template, compiled to a method that returns only the variable parts, without the constant text.
    #
    # The text between two code tags (`<% %>`) is a *piece*, including its expressions (`<%= %>`). The client has the
    # constant text of each piece. So a rendered piece is only its number and the values of its expressions:
    # `[3, "7", "on"]`. A rendered template is a list of pieces, in the order in which the code has rendered them.
    # `<%= %>` escapes HTML, except for {Page#raw} and strings that are `html_safe?`.
    #
    # @api private
    class Template
      TAG = /<%(?:(?<kind>%)|(?<kind>[=#]?)(?<code>.*?)-?%>)/m
      # A code tag alone on its line. The HTML gets no line for it.
      ALONE = /^[ \t]*(<%(?![%=])(?:(?!%>).)*%>)[ \t]*\n/m
      private_constant :TAG, :ALONE

      # @param value [Object] an expression's value
      # @return [Integer, String] the value to send
      def self.escape(value)
        return value if value.is_a?(Integer)

        text = value.to_s
        value.respond_to?(:html_safe?) && value.html_safe? ? text : ERB::Escape.html_escape(text)
      end

      # @return [Array<Array<String>>] for each piece the constant text before, between and after its values
      attr_reader :statics

      # @param source [String] ERB, in UTF-8
      # @param file [String] the file's path, for backtraces
      def initialize(source, file)
        source = Arguments.string("text:", source)
        @source = source.gsub(ALONE, "\\1<%#\n%>") # moves the newline into a comment: keeps line numbers right
        @file = file
        @statics = []
        @code = +""
        compile
      end

      # Defines the method `render_pieces` in a class.
      # @param page [Class]
      # @return [void]
      # @raise [SyntaxError] if the template's code is invalid
      def define_in(page)
        code = "def render_pieces; _live = []; #{@code}; _live; end"
        page.class_eval(code, @file, 1)
      end

      # Joins pieces with the constant text.
      # @param pieces [Array<Array>]
      # @return [String] HTML
      def join(pieces)
        pieces.each_with_object(+"") do |(number, *values), html|
          first, *rest = @statics[number]
          html << first
          rest.each_with_index { |text, i| html << values[i].to_s << text }
        end
      end

      private

      def compile
        @piece = nil
        rest = @source
        while (tag = TAG.match(rest))
          add_text(tag.pre_match)
          add_tag(tag[:kind], tag[:code])
          rest = tag.post_match
        end
        add_text(rest)
        end_piece
      end

      def add_tag(kind, code)
        case kind
        when "%" then add_text("<%")
        when "#" then @code << ("\n" * code.count("\n"))
        when "=" then add_expression(code)
        else
          end_piece
          @code << code << (code.include?("#") ? "\n" : ";")
        end
      end

      def add_expression(code)
        begin_piece
        @piece << +""
        @code << "::Heddle::Live::Template.escape((#{code}#{"\n" if code.include?("#")})),"
      end

      def add_text(text)
        return if text.empty?

        begin_piece
        @piece.last << text
        @code << ("\n" * text.count("\n"))
      end

      def begin_piece
        return if @piece

        @code << "_live << [#{@statics.size},"
        @statics << (@piece = [+""])
      end

      def end_piece
        return unless @piece

        @code << "];"
        @piece = nil
      end
    end
  end
end
