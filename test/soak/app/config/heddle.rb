# frozen_string_literal: true

workers 3
protect :offload, :preempt, :stall_report, :handoff, :callback_report
solid_queue true
stop_timeout 5
