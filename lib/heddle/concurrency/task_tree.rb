# frozen_string_literal: true

require "heddle/printable_text" # now, because code can't be loaded in a signal handler

module Heddle
  # Text that shows the tasks of one loop: their names, states, and where each task waits. See {Heddle.task_tree}.
  class TaskTree
    # @param context [Concurrency::Context]
    # @param lines [Integer, nil] maximum lines of backtrace for each task; nil: all
    def initialize(context, lines: nil)
      @context = context
      @lines = lines && Arguments.count("lines:", lines, 0)
    end

    # @return [String]
    def to_s
      out = +""
      root = @context.root
      add_task(out, root, 0) if root && !root.ended?
      add_children(out, @context.detached_tasks, -1)
      each_plain_fiber { |fiber, state| add_plain_fiber(out, fiber, state) }
      out.empty? ? "no tasks\n" : out
    end

    private

    def add_task(out, task, depth)
      notes = [task.state]
      notes << "background" if task.background?
      notes << "cancelled" if task.cancelled?
      add(out, depth, task.name, notes, task.backtrace)
      add_children(out, task, depth)
    end

    # A task of the gem async is a child of two tasks: the task of its scope, which waits for it, and the task that has
    # started it. The tree shows such a child only below the task that has started it.
    def add_children(out, task, depth)
      task.children.each do |child|
        above = child.shown_below
        add_task(out, child, depth + 1) if above.nil? || above.equal?(task)
      end
    end

    def add_plain_fiber(out, fiber, state)
      add(out, 0, "fiber #{fiber.object_id}", [state, "not a task"], Concurrency.backtrace(fiber))
      implicit_task = @context.implicit_task(fiber)
      add_children(out, implicit_task, 0) if implicit_task
    end

    def each_plain_fiber
      @context.each_fiber { |fiber, job, state| yield fiber, state unless job.is_a?(Concurrency::TaskFrame) }
    end

    def add(out, depth, name, notes, backtrace)
      indent = "  " * depth
      out << indent << PrintableText.line(name) << " (" << notes.join(", ") << ")\n"
      own = backtrace.reject { |line| Concurrency.own_line?(line) }
      own = own.first(@lines) if @lines
      own.each { |line| out << indent << "    " << PrintableText.line(line) << "\n" }
    end
  end
end
