"""What annotators answered: files, sheets and answers about pairs made into labels, and their faults."""
