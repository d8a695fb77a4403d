# frozen_string_literal: true

require_relative "../parts"

workers 3
protect :offload, :preempt, :stall_report, :handoff, :callback_report
solid_queue true
stop_timeout 5

Parts.watch # in the master
worker_boot { Parts.watch }
