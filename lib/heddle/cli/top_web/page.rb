# frozen_string_literal: true

module Heddle
  module CLI
    class TopWeb
      # The page: the drawing of `heddle top`, line by line.
      class Page < Live::Page
        STYLE_PATH = "/top.css"
        # How wide its lines are, in characters.
        COLUMNS = 140
        private_constant :COLUMNS

        class << self
          # @return [Feed]
          attr_reader :feed

          # @param feed [Feed]
          # @return [Class] of pages that draw it
          def of(feed) = Class.new(self) { @feed = feed }

          # @return [String]
          def name = "heddle top"
        end

        template File.join(__dir__, "page.erb")
        event :switch

        def mount(_params)
          @tasks = false
          look
          every(feed.interval) { look }
        end

        # Shows the task tree, or hides it.
        def switch
          @tasks = !@tasks
          look
        end

        def title = "heddle top"

        def head = "<link rel=\"stylesheet\" href=\"#{STYLE_PATH}\">"

        private

        def feed = self.class.feed

        def look
          view = feed.look
          @failure = view.failure
          @lines = lines_of(view) unless @failure
        end

        # @return [Array<Array<Array(String, Symbol)>>] for each line its texts with their styles
        def lines_of(view)
          overview = Overview.new(view.report, view.before, view.elapsed, columns: COLUMNS)
          lines = @tasks ? [*overview.head, "", *feed.tasks.lines(chomp: true)] : overview.lines
          lines.map { |line| Array(line).map { |text, style| [Visible.line(text), style] } }
        end
      end
    end
  end
end
